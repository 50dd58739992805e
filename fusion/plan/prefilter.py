"""Cheap necessary conditions for sets of stages to share a kernel, so that the search looks closely at few sets.

Some structural rules only get worse as a kernel grows: once two atoms break one under an assignment of dims to grid and loops, every
kernel with both breaks it. These are found once for every pair; a set is then judged by a few bit operations. A test checks that
nothing is refused here that the rules allow.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

from fusion.plan.ideals import bits as bits_of
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
    def broken(self) -> tuple[tuple[int, int], ...]:
        """Pairs (and single atoms) as bits, with the assignments, as bits, under which no legal kernel has both."""
        pairs = [(a, b) for a, b in itertools.combinations_with_replacement(self.atoms, 2) if a == b or self._linked(a, b)]
        found = ((self.bit[a] | self.bit[b], self._broken_by(a, b)) for a, b in pairs)
        return tuple((pair, ways) for pair, ways in found if ways)

    def _broken_by(self, a: str, b: str) -> int:
        dims, known, found = self.dims[a] | self.dims[b], dict[Assignment, bool](), 0
        for i, assignment in enumerate(self.assignments):
            local = assignment.within(dims)
            if local not in known:
                known[local] = self._breaks(a, b, local)
            found |= known[local] << i
        return found

    def _alive(self, bits: int) -> int:
        """The assignments under which no pair of the atoms is broken."""
        alive = (1 << len(self.assignments)) - 1
        for pair, ways in self.broken:
            if pair & bits == pair:
                alive &= ~ways
        return alive

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

    @cached_property
    def looping(self) -> dict[str, int]:
        """For every dim that may not be a loop where all stages have it (its blocks share nothing): the assignments that make it one."""
        free = (d for d in self.tiling.spread if d not in self.special)
        return {d: sum(1 << i for i, a in enumerate(self.assignments) if d in a.loops) for d in free}

    def legal_so_far(self, atoms: frozenset[str]) -> list[Assignment]:
        """Assignments, restricted to the dims of the set, that break nothing known here."""
        bits = sum(self.bit[a] for a in atoms)
        have = [self.dims[a] for a in atoms]
        alive = self._alive(bits)
        for d, ways in self.looping.items():
            if all(d in dims for dims in have):
                alive &= ~ways
        dims = frozenset[str]().union(*have)
        leaving = [v.dims for a in atoms for v in self.stored[a] if v.output or v.readers & ~bits]
        found = dict.fromkeys(self.assignments[i].within(dims) for i in bits_of(alive))
        return [a for a in found if not any(self._grid_bits(a) & ~v for v in leaving)]

    def _grid_bits(self, assignment: Assignment) -> int:
        return sum(self.dim_bit[d] for d in assignment.grid)

    def possible(self, atoms: frozenset[str]) -> bool:
        """False if no larger kernel with these atoms can be legal either."""
        return self._alive(sum(self.bit[a] for a in atoms)) != 0
