"""The planner: for an exact number of kernels, the legal plan of least estimated cost, and the next best few.

For every combination of tile sizes, the partition of the stages into kernels is searched exactly (search.py); the cost of a set of stages
is that of its cheapest legal kernel (realize.py). Stages that only finish a result for the caller may run on the host instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import networkx as nx

from fusion.cost.simple import host_us
from fusion.errors import FusionError
from fusion.graph import Op, StageGraph
from fusion.graph.ops import OPS
from fusion.plan.device import Limits
from fusion.plan.prefilter import Prefilter
from fusion.plan.realize import Realized, distance, fits, legal_structures, options, placed, realize, why_not
from fusion.plan.rules import structure_refusals
from fusion.plan.search import Found, Partition, PartitionSearch, best_partitions
from fusion.plan.structure import MIN_SPLIT_TILE, Structure
from fusion.plan.tiling import Tiling, tilings
from fusion.plan.types import Kernel, Plan, Refusal
from fusion.words import count

KEEP = 3
MOST_TRIED = 32  # tilings that are looked at for the reason of a refusal
AHEAD = 8  # further partitions whose kernels are checked against the memories in the same go


@dataclass(frozen=True)
class Planned:
    """A plan with its estimated time in microseconds, and how long each kernel and the host's part take."""

    plan: Plan
    us: float
    kernel_us: tuple[float, ...]
    host_us: float


@dataclass(frozen=True)
class Choice:
    """A kernel for a set of atoms, the stages of the set that the host runs instead, and the cost of both in microseconds."""

    option: Realized
    host: tuple[str, ...]
    us: float


@dataclass
class _Chooser:
    """The choices for every set of atoms under one tiling, cheapest first; memory is looked at when a choice is about to be used."""

    tiling: Tiling
    atoms: dict[str, tuple[str, ...]]
    limits: Limits
    structures: dict[frozenset[str], list[Structure]]  # legal structures of a set, shared by all tilings
    prefilter: Prefilter
    choices: dict[frozenset[str], list[Choice]] = field(default_factory=dict[frozenset[str], list[Choice]])
    offered: dict[frozenset[str], list[Realized]] = field(default_factory=dict[frozenset[str], list[Realized]])
    fit: dict[int, bool] = field(default_factory=dict[int, bool])  # by the identity of an option

    def stages(self, atoms: Iterable[str]) -> tuple[str, ...]:
        inside = {s for a in atoms for s in self.atoms[a]}
        return tuple(s.name for s in self.tiling.graph.stages if s.name in inside)

    def cost(self, atoms: frozenset[str]) -> float | None:
        """Microseconds of the cheapest kernel not known to overflow a memory, the host's part included; None if there is none."""
        choice = self.choose(atoms)
        return None if choice is None else choice.us

    def choose(self, atoms: frozenset[str]) -> Choice | None:
        found = self.choices.get(atoms)
        if found is None:
            found = self.choices[atoms] = self._choices(atoms)
        return found[0] if found else None

    def possible(self, atoms: frozenset[str]) -> bool:
        """False if no larger kernel with these atoms can be legal, whatever the host takes over."""
        rest = atoms - self.movable
        return not rest or self.prefilter.possible(rest)

    def confirm(self, atoms: frozenset[str]) -> bool:
        """Whether the cheapest choice fits the memories; if not, it is struck out."""
        choices = self.choices[atoms]
        key = id(choices[0].option)
        if key not in self.fit:
            self.fit[key] = fits(choices[0].option, self.limits)
        if not self.fit[key]:
            del choices[0]
            return False
        return True

    def _choices(self, atoms: frozenset[str]) -> list[Choice]:
        movable = sorted(atoms & self.movable)
        found: list[Choice] = []
        for moved in itertools.chain.from_iterable(itertools.combinations(movable, n) for n in range(len(movable) + 1)):
            rest, host = atoms - set(moved), self.stages(moved)
            extra = self.host_cost(host)
            found += [Choice(o, host, o.cost.us + extra) for o in (self._options(rest) if rest else ())]
        return sorted(found, key=lambda c: (c.us, len(c.host)))

    def _options(self, atoms: frozenset[str]) -> list[Realized]:
        if atoms not in self.offered:
            self.offered[atoms] = self._offer(atoms)
        return self.offered[atoms]

    def _offer(self, atoms: frozenset[str]) -> list[Realized]:
        known = self.structures.get(atoms)
        if known is None:
            known = legal_structures(self.tiling, self.stages(atoms), self.prefilter.legal_so_far(atoms))
            self.structures[atoms] = known
        return options((s if s.tiling is self.tiling else s.retiled(self.tiling) for s in known), self.limits)

    @cached_property
    def movable(self) -> frozenset[str]:
        """Atoms that the host may run instead."""
        return frozenset(a for a in self.atoms if self.may_run_on_host(a))

    def may_run_on_host(self, atom: str) -> bool:
        """A stage that only casts or scales what kernels leave, for the caller."""
        graph = self.tiling.graph
        stage = graph.stage(self.atoms[atom][0])
        plain = stage.unit == "vector" and not stage.scan and all(self.is_plain(op) for op in stage.body)
        return plain and all(graph.value(o).role == "output" or not graph.readers(o) for o in stage.writes) and self.reads_atomics(atom)

    def is_plain(self, op: Op) -> bool:
        """An elementwise operation with an operand as large as the result."""
        dims = {v: set(self.tiling.graph.value(v).dims) for v in (*op.reads, op.out)}
        return OPS[op.fn].form == "elementwise" and any(dims[r] == dims[op.out] for r in op.reads)

    def reads_atomics(self, atom: str) -> bool:
        """Whether the stage takes results of contractions or sums: what blocks may have to add up atomically."""
        graph = self.tiling.graph
        sums = {op.out for s in graph.stages for op in s.body if OPS[op.fn].form in ("contract", "reduce")}
        return any(r in sums for r in graph.stage(self.atoms[atom][0]).reads)

    def host_cost(self, stages: tuple[str, ...]) -> float:
        return sum(self.host_costs[s] for s in stages)

    @cached_property
    def host_costs(self) -> dict[str, float]:
        """Microseconds that the host takes for each stage it may run."""
        graph, found = self.tiling.graph, dict[str, float]()
        for s in self.stages(self.movable):
            touched = [graph.value(v) for v in (*graph.stage(s).reads, *graph.stage(s).writes)]
            found[s] = host_us(sum(graph.size(v.dims) * v.itemsize for v in touched))
        return found


class Planner:
    """Plans one operator for one device."""

    def __init__(self, graph: StageGraph, limits: Limits | None = None, device: str = "910B3") -> None:
        self.graph = graph
        self.limits = limits or Limits()
        self.device = device

    @cached_property
    def atoms(self) -> dict[str, tuple[str, ...]]:
        """What stays together: single stages, and the stages of each scan, by the name of the first."""
        groups = self.graph.scan_groups()
        grouped = {s for g in groups for s in g}
        atoms = {g[0]: g for g in groups} | {s.name: (s.name,) for s in self.graph.stages if s.name not in grouped}
        return {s.name: atoms[s.name] for s in self.graph.stages if s.name in atoms}

    @cached_property
    def atom_graph(self) -> nx.DiGraph[str]:
        owner = {s: a for a, stages in self.atoms.items() for s in stages}
        g: nx.DiGraph[str] = nx.DiGraph()
        g.add_nodes_from(self.atoms)
        g.add_edges_from((owner[u], owner[v]) for u, v in self.graph.graph.edges if owner[u] != owner[v])
        return g

    def plan(self, target: int, keep: int = KEEP) -> list[Planned]:
        """The best plans with exactly `target` kernels, cheapest first. Raises FusionError with the rule that forbids the count."""
        return self.plans((target,), keep)[target]

    def plans(self, targets: tuple[int, ...], keep: int = KEEP) -> dict[int, list[Planned]]:
        """As `plan`, for several counts at once. Exact over all partitions and all tilings tried, unless a note in the plan says not."""
        for t in targets:
            if t < 1:
                raise FusionError(f"--target {t}", where=self.graph.name, remedy="a plan has at least one kernel")
        found = self.possible(targets, keep)
        for t in targets:
            if not found[t]:
                raise self.impossible(t)
        return found

    def possible(self, targets: tuple[int, ...], keep: int = KEEP) -> dict[int, list[Planned]]:
        """As `plans`, with no plans for a count that is impossible."""
        found: dict[int, list[Planned]] = {t: [] for t in targets}
        for chooser in self.choosers:
            result = self._search(chooser, targets, keep)
            for t in targets:
                found[t] += [self._planned(chooser, p, result.exact) for p in result.best[t]]
        for t in targets:
            found[t].sort(key=lambda p: p.us)
            del found[t][keep:]
        return found

    def _search(self, chooser: _Chooser, targets: tuple[int, ...], keep: int) -> Found:
        """Searches again whenever a kernel of a best partition turns out not to fit: costs only rise, so the last answer is exact."""
        if not all(self._fits_alone(chooser, a) for a in self.atoms if a not in chooser.movable):
            return Found({t: [] for t in targets}, True, {})
        search = PartitionSearch(self.atom_graph, chooser.cost, chooser.possible, like=self._searches.get(id(chooser.prefilter)))
        self._searches.setdefault(id(chooser.prefilter), search)
        while True:
            result = search.best(targets, keep + AHEAD)
            struck = self._struck(chooser, result)
            wanted = {atoms for t in targets for p in result.best[t][:keep] for atoms in p.kernels}
            if not wanted.intersection(struck):
                return Found({t: found[:keep] for t, found in result.best.items()}, result.exact, result.nearest)
            for atoms in struck:
                search.reprice(atoms)

    def _struck(self, chooser: _Chooser, result: Found) -> list[frozenset[str]]:
        """Kernels of the partitions found, and of the next few, whose cheapest choice does not fit."""
        used = {atoms for partitions in result.best.values() for p in partitions for atoms in p.kernels}
        return [atoms for atoms in sorted(used, key=sorted) if not chooser.confirm(atoms)]

    def _fits_alone(self, chooser: _Chooser, atom: str) -> bool:
        one = frozenset({atom})
        while chooser.choose(one) is not None:
            if chooser.confirm(one):
                return True
        return False

    @cached_property
    def _searches(self) -> dict[int, PartitionSearch]:
        """The first search under each prefilter: later ones take over its enumeration."""
        return {}

    @cached_property
    def choosers(self) -> list[_Chooser]:
        """One for each tiling; tilings that differ only in sizes that no rule of structure looks at share their legal structures."""
        shared: dict[tuple[object, ...], tuple[dict[frozenset[str], list[Structure]], Prefilter]] = {}
        found: list[_Chooser] = []
        for tiling in tilings(self.graph):
            key = (tiling.spread, tuple((d, tiling.has_tail(d), t >= MIN_SPLIT_TILE) for d, t in tiling.tiles))
            if key not in shared:
                shared[key] = ({}, Prefilter(tiling, self.atoms))
            found.append(_Chooser(tiling, self.atoms, self.limits, *shared[key]))
        return found

    def _planned(self, chooser: _Chooser, partition: Partition, exact: bool) -> Planned:
        kernels, times, host = list[Kernel](), list[float](), list[str]()
        for number, atoms in enumerate(partition.kernels, 1):
            choice = chooser.choose(atoms)
            assert choice is not None
            kernel = placed(choice.option.structure, choice.option.kernel)
            kernels.append(replace(kernel, name=kernel_name(number, choice.option.kernel.stages)))
            times.append(choice.option.cost.us)
            host += choice.host
        notes = () if exact else ("the search was bounded: a cheaper plan may exist",)
        plan = Plan(self.graph, chooser.tiling.tiles, tuple(kernels), tuple(host), self.device, notes)
        return Planned(plan, partition.cost, tuple(times), chooser.host_cost(tuple(host)))

    def impossible(self, target: int) -> FusionError:
        """Why no plan has so many kernels: the rule for the last merges, and the nearest counts that work."""
        chooser = self.choosers[0]
        likely = best_partitions(self.atom_graph, chooser.cost, (target,), 1).nearest.get(target, ())
        nearest = [n for n in likely if self.possible((n,), 1)[n]]  # likely by structure; now with the memories
        near = (
            f"nearest {'count that works' if len(nearest) == 1 else 'counts that work'}: {' and '.join(map(str, nearest))}"
            if nearest
            else "no count works for these shapes"
        )
        if target > len(self.atoms):
            return FusionError(
                f"--target {target}: the operator has {count(len(self.atoms), 'stage')} that can be apart",
                where=self.graph.name,
                remedy=near,
            )
        reason = self.forbidding(chooser)
        return FusionError(f"--target {target} is impossible: {reason}", where=self.graph.name, remedy=near)

    def forbidding(self, chooser: _Chooser) -> str:
        """The first rule that forbids all stages together, or else a single stage."""
        for atom in self.atoms:
            if chooser.cost(frozenset({atom})) is None and not chooser.may_run_on_host(atom):
                tried = [why_not(c.tiling, self.atoms[atom], self.limits) for c in self.choosers[:MOST_TRIED]]
                refusals = min((t for t in tried if t), key=distance, default=[])
                return str(refusals[0]) if refusals else f"stage {atom} has no legal kernel"
        everything = chooser.stages(self.atoms)
        whole = Structure(chooser.tiling, everything, (), ())
        fixed = [r for r in structure_refusals(whole) if r.rule == "exists-after"]
        refusals = fixed or why_not(chooser.tiling, everything, self.limits)
        return str(refusals[0]) if refusals else "no legal partition"


def kernel_name(number: int, stages: tuple[str, ...]) -> str:
    """`k2_qk_softmax`: the number in launch order and the first and last stage."""
    ends = stages if len(stages) < 3 else (stages[0], stages[-1])
    return f"k{number}_{'_'.join(ends)}"


def refusals_of(graph: StageGraph, tiling: Tiling, stages: tuple[str, ...], limits: Limits) -> list[Refusal]:
    """Why a set of stages cannot be one kernel; empty if it can."""
    if realize(tiling, stages, limits):
        return []
    return why_not(tiling, stages, limits)
