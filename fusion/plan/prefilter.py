"""Cheap necessary conditions for sets of stages to share a kernel, so that the search looks closely at few sets.

Some structural rules only get worse as a kernel grows: once two atoms break one under an assignment of dims to grid and loops, every
kernel with both breaks it. These are found once for every pair; a set is then judged by a few bit operations. A test checks that
nothing is refused here that the rules allow.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

from fusion.plan.masks import conditions
from fusion.plan.rules import GROWING_RULES
from fusion.plan.structure import Structure
from fusion.plan.tiling import Tiling

MAX_LOOPS = 3


@dataclass(frozen=True)
class Assignment:
    """Which of the spread dims are loops; the others are in the grid."""

    grid: tuple[str, ...]
    loops: tuple[str, ...]

    def within(self, dims: frozenset[str]) -> Assignment:
        return Assignment(tuple(d for d in self.grid if d in dims), tuple(d for d in self.loops if d in dims))


@dataclass(frozen=True)
class Stored:
    """A value that must stay inside of a kernel if the grid has a dim that it lacks: its dims and readers, as bits."""

    dims: int
    readers: int
    output: bool


class Prefilter:
    """Judges sets of atoms (names to stages) under one tiling's spread dims."""

    def __init__(self, tiling: Tiling, atoms: dict[str, tuple[str, ...]]) -> None:
        self.tiling = tiling
        self.atoms = atoms
        self.bit = {a: 1 << i for i, a in enumerate(atoms)}
        self.dim_bit = {d: 1 << i for i, d in enumerate(tiling.spread)}
        self.dims = {a: frozenset(d for s in stages for d in tiling.graph.stage_dims(s)) for a, stages in atoms.items()}
        self.special = self._special()

    def _special(self) -> frozenset[str]:
        """Dims that are not simply parallel: summed over, scanned or bounded by a mask by some stage."""
        graph = self.tiling.graph
        summed = {d for s in graph.stages for op in s.body for d in op.over}
        return frozenset(summed | {s.scan for s in graph.stages} | {d for c in conditions(graph) for d in c.dims})

    @cached_property
    def assignments(self) -> tuple[Assignment, ...]:
        """All ways to choose the loops, fewest loops first."""
        spread = self.tiling.spread
        choices = itertools.chain.from_iterable(itertools.combinations(spread, n) for n in range(min(MAX_LOOPS, len(spread)) + 1))
        return tuple(Assignment(tuple(d for d in spread if d not in loops), loops) for loops in choices)

    @cached_property
    def broken(self) -> tuple[tuple[int, ...], ...]:
        """For every assignment the pairs (and single atoms) of which no legal kernel has both, as bits."""
        pairs = [(a, b) for a, b in itertools.combinations_with_replacement(self.atoms, 2) if a == b or self._linked(a, b)]
        known: dict[tuple[str, str, Assignment], bool] = {}
        found: list[tuple[int, ...]] = []
        for assignment in self.assignments:
            bad: list[int] = []
            for a, b in pairs:
                local = assignment.within(self.dims[a] | self.dims[b])
                key = (a, b, local)
                if key not in known:
                    known[key] = self._breaks(a, b, local)
                if known[key]:
                    bad.append(self.bit[a] | self.bit[b])
            found.append(tuple(bad))
        return tuple(found)

    def _linked(self, a: str, b: str) -> bool:
        graph = self.tiling.graph.graph
        return any(graph.has_edge(u, v) or graph.has_edge(v, u) for u in self.atoms[a] for v in self.atoms[b])

    def _breaks(self, a: str, b: str, local: Assignment) -> bool:
        inside = {*self.atoms[a], *self.atoms[b]}
        stages = tuple(s.name for s in self.tiling.graph.stages if s.name in inside)
        structure = Structure(self.tiling, stages, local.grid, local.loops)
        return any(True for rule in GROWING_RULES for _ in rule(structure))

    @cached_property
    def stored(self) -> dict[str, tuple[Stored, ...]]:
        """For every atom the values that it would have to store if a reader is outside."""
        graph, owner = self.tiling.graph, {s: a for a, stages in self.atoms.items() for s in stages}
        found: dict[str, tuple[Stored, ...]] = {}
        for atom, stages in self.atoms.items():
            values: list[Stored] = []
            for op in (op for s in stages for op in graph.stage(s).body):
                readers = sum({self.bit[owner[r]] for r in graph.readers(op.out)})
                output = graph.value(op.out).role == "output"
                if readers & ~self.bit[atom] or output:
                    dims = sum(self.dim_bit[d] for d in set(graph.op_dims(op)) | set(op.over) if d in self.dim_bit)
                    values.append(Stored(dims, readers, output))
            found[atom] = tuple(values)
        return found

    def legal_so_far(self, atoms: frozenset[str]) -> list[Assignment]:
        """Assignments, restricted to the dims of the set, that break nothing known here."""
        bits = sum(self.bit[a] for a in atoms)
        dims = frozenset[str]().union(*(self.dims[a] for a in atoms))
        common = frozenset.intersection(*(self.dims[a] for a in atoms))
        fixed = {d for d in common if d not in self.special}
        found: dict[Assignment, None] = {}
        for assignment, bad in zip(self.assignments, self.broken, strict=True):
            if not fixed.intersection(assignment.loops) and not any(b & bits == b for b in bad):
                local = assignment.within(dims)
                if local not in found and self._stores_fit(atoms, bits, local):
                    found[local] = None
        return list(found)

    def _stores_fit(self, atoms: frozenset[str], bits: int, local: Assignment) -> bool:
        grid = sum(self.dim_bit[d] for d in local.grid)
        for a in atoms:
            for v in self.stored[a]:
                if grid & ~v.dims and (v.output or v.readers & ~bits):
                    return False
        return True

    def possible(self, atoms: frozenset[str]) -> bool:
        """False if no larger kernel with these atoms can be legal either."""
        bits = sum(self.bit[a] for a in atoms)
        return any(not any(b & bits == b for b in bad) for bad in self.broken)
