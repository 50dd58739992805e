"""The planner: for an exact number of kernels, the legal plan of least estimated cost, and the next best few.

For every combination of tile sizes, the partition of the stages into kernels is searched exactly (search.py); the cost of a set of stages
is that of its cheapest legal kernel (chooser.py). Stages that only finish a result for the caller may run on the host instead.

Whether a kernel fits the on-chip memories takes long to tell, so it is asked for the kernels of the best partitions of all tilings only,
and again after those that do not fit have been struck out: costs only rise, so the last answer is exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from fusion.errors import FusionError
from fusion.graph import StageGraph
from fusion.plan.atoms import Atoms, AtomSet
from fusion.plan.chooser import Chooser, choosers
from fusion.plan.device import Limits
from fusion.plan.facts import first_like
from fusion.plan.realize import placed
from fusion.plan.search import Partition, PartitionSearch
from fusion.plan.types import Kernel, Plan

KEEP = 3


@dataclass(frozen=True)
class Planned:
    """A plan with its estimated time in microseconds, and how long each kernel and the host's part take."""

    plan: Plan
    us: float
    kernel_us: tuple[float, ...]
    host_us: float


@dataclass
class Contender:
    """One tiling's search, and the best partitions it has now for each count."""

    chooser: Chooser
    search: PartitionSearch
    best: dict[int, list[Partition]]
    exact: bool = True

    def look(self, counts: tuple[int, ...], keep: int) -> None:
        """Searches with the costs of now."""
        found = self.search.best(counts, keep, near=False)
        self.best, self.exact = found.best, found.exact

    def strike(self, kernels: set[AtomSet]) -> bool:
        """Whether some kernel's cheapest choice does not fit: it is struck out."""
        struck = [k for k in kernels if not self.chooser.confirm(k)]
        for k in struck:
            self.search.reprice(k)
        return bool(struck)


class Planner:
    """Plans one operator for one device."""

    def __init__(self, graph: StageGraph, limits: Limits | None = None, device: str = "910B3") -> None:
        self.graph = graph = first_like(graph)
        self.limits = limits or Limits()
        self.device = device
        self.parts = Atoms(graph, self.limits.device)

    @property
    def atoms(self) -> dict[str, tuple[str, ...]]:
        """What stays together: single stages, and the stages of each scan, by the name of the first."""
        return self.parts.stages

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
        contenders = [self._contender(c) for c in self.choosers]
        for c in contenders:
            c.look(targets, keep)
        while True:
            best = {t: self._cheapest(contenders, t, keep) for t in targets}
            struck = self._struck(best)
            if not struck:
                exact = all(c.exact for c in contenders)
                return {t: [self._planned(c.chooser, p, exact) for c, p in pairs] for t, pairs in best.items()}
            for c in struck:
                c.look(targets, keep)

    def _contender(self, chooser: Chooser) -> Contender:
        key = id(chooser.shared)
        search = PartitionSearch(self.parts.order, chooser.cost, chooser.possible, like=self._searches.get(key))
        self._searches.setdefault(key, search)
        return Contender(chooser, search, {})

    @staticmethod
    def _cheapest(contenders: list[Contender], target: int, keep: int) -> list[tuple[Contender, Partition]]:
        """The best partitions of all tilings; of equal ones those with the smaller tiles."""
        pairs = ((c, p) for c in contenders for p in c.best.get(target, ()))
        return sorted(pairs, key=lambda pair: pair[1].cost)[:keep]

    @staticmethod
    def _struck(found: dict[int, list[tuple[Contender, Partition]]]) -> list[Contender]:
        """The contenders of which some kernel did not fit: its cheapest choice is struck out."""
        used: dict[int, tuple[Contender, set[AtomSet]]] = {}
        for contender, partition in (pair for pairs in found.values() for pair in pairs):
            used.setdefault(id(contender), (contender, set()))[1].update(partition.kernels)
        return [contender for contender, kernels in used.values() if contender.strike(kernels)]

    @cached_property
    def _searches(self) -> dict[int, PartitionSearch]:
        """The first search under each prefilter: later ones take over its enumeration."""
        return {}

    @cached_property
    def choosers(self) -> list[Chooser]:
        """One for each tiling."""
        return list(choosers(self.graph, self.parts, self.limits))

    def _planned(self, chooser: Chooser, partition: Partition, exact: bool) -> Planned:
        kernels, times, host = list[Kernel](), list[float](), list[str]()
        for number, atoms in enumerate(partition.kernels, 1):
            choice = chooser.choose(atoms)
            assert choice is not None
            option = choice.offer.option
            kernel = placed(option.structure, option.kernel)
            kernels.append(replace(kernel, name=kernel_name(number, kernel.stages)))
            times.append(option.cost.us)
            host += choice.host
        notes = () if exact else ("the search was bounded: a cheaper plan may exist",)
        plan = Plan(self.graph, chooser.tiling.tiles, tuple(kernels), tuple(host), self.device, notes)
        return Planned(plan, partition.cost, tuple(times), self.parts.host_us(tuple(host)))

    def impossible(self, target: int) -> FusionError:
        """Why no plan has so many kernels: the rules in the way, and the nearest counts that work."""
        from fusion.plan.reasons import impossible

        return impossible(self, target)


def kernel_name(number: int, stages: tuple[str, ...]) -> str:
    """`k2_qk_softmax`: the number in launch order and the first and last stage."""
    ends = stages if len(stages) < 3 else (stages[0], stages[-1])
    return f"k{number}_{'_'.join(ends)}"
