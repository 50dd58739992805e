"""split-oversize: a kernel that does not fit a core becomes several that do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import networkx as nx

from fusion import words
from fusion.passes import PassResult, PlanPass
from fusion.passes.check import kernel_problems, limits_of, structure_of, tiling_of
from fusion.plan.device import Limits
from fusion.plan.realize import Realized, placed, realize, why_not
from fusion.plan.search import best_partitions
from fusion.plan.tiling import Tiling
from fusion.plan.types import Kernel, Plan, Refusal

OVERSIZE = ("memory-fits", "flags-fit", "cube-tiles-fit")
Stages = tuple[str, ...]


@dataclass(frozen=True)
class SplitOversize(PlanPass):
    """A kernel that needs more memory or flags than there are is replaced by the cheapest two legal ones, or three, or as many as it takes.

    Before: kernel k1: qk softmax dv dp ds dk dq      251,904 B of UB, 196,352 B are there
    After:  kernel k1_part1: qk softmax dp ds         kernel k1_part2: dv dk dq

    Options: `most` kernels in place of one (0: as many as it has stages).
    Refuses when: a single stage, or a scan's stages together, does not fit, with the bytes: only smaller tiles help then.
    Source: the exact search of fusion/plan/search.py over the kernel's own stages; the tiles stay as they are.
    """

    name: ClassVar[str] = "split-oversize"
    most: int = 0

    def apply(self, artefact: Plan) -> PassResult[Plan]:
        limits, kernels, refusals = limits_of(artefact), list[Kernel](), list[Refusal]()
        for k in artefact.kernels:
            problems = [r for r in kernel_problems(structure_of(artefact, k), k, limits) if r.rule in OVERSIZE]
            parts = _parts(artefact, k, limits, self.most) if problems else ()
            kernels += parts or (k,)
            if problems and not parts:
                refusals += _why_not(artefact, k, limits, self.most) or problems
        after = replace(artefact, kernels=tuple(kernels))
        return PassResult(after, after != artefact, tuple(refusals))


def _parts(plan: Plan, kernel: Kernel, limits: Limits, most: int) -> tuple[Kernel, ...]:
    """The fewest legal kernels, and of those the cheapest, in place of one; empty if there are none."""
    atoms, tiling, found = _atoms(plan, kernel), tiling_of(plan), dict[frozenset[str], Realized | None]()

    def choose(names: frozenset[str]) -> Realized | None:
        if names not in found:
            found[names] = realize(tiling, _stages(plan, atoms, names), limits)
        return found[names]

    def cost(names: frozenset[str]) -> float | None:
        choice = choose(names)
        return choice.cost.us if choice else None

    for count in range(2, min(most or len(atoms), len(atoms)) + 1):
        best = best_partitions(_order(plan, atoms), cost, (count,), 1).best[count]
        if best:
            chosen = [choose(names) for names in best[0].kernels]
            return tuple(replace(placed(c.structure, c.kernel), name=f"{kernel.name}_part{i}") for i, c in enumerate(chosen, 1) if c)
    return ()


def _atoms(plan: Plan, kernel: Kernel) -> dict[str, Stages]:
    """What must stay together, by its first stage: a single stage, or those of a scan."""
    owner = {s: group for group in plan.graph.scan_groups() for s in group}
    groups = dict.fromkeys(owner.get(s.name, (s.name,)) for s in plan.graph.stages if s.name in kernel.stages)
    return {g[0]: g for g in groups}


def _order(plan: Plan, atoms: dict[str, Stages]) -> nx.DiGraph[str]:
    owner = {s: a for a, group in atoms.items() for s in group}
    g: nx.DiGraph[str] = nx.DiGraph()
    g.add_nodes_from(atoms)
    edges = ((owner[u], owner[v]) for u, v in plan.graph.graph.edges if u in owner and v in owner)
    g.add_edges_from((u, v) for u, v in edges if u != v)
    return g


def _stages(plan: Plan, atoms: dict[str, Stages], names: frozenset[str]) -> Stages:
    inside = {s for a in names for s in atoms[a]}
    return tuple(s.name for s in plan.graph.stages if s.name in inside)


def _why_not(plan: Plan, kernel: Kernel, limits: Limits, most: int) -> list[Refusal]:
    """The refusals of the atoms that have no legal kernel of their own; else that `most` is too small."""
    tiling: Tiling = tiling_of(plan)
    atoms = _atoms(plan, kernel)
    alone = [r for a in atoms.values() if not realize(tiling, a, limits) for r in _placed(a, why_not(tiling, a, limits))]
    if alone or not 0 < most < len(atoms):
        return alone
    return [
        Refusal(
            "most",
            kernel.name,
            f"does not fit in the {words.count(most, 'kernel')} that the option allows; "
            f"it has {words.count(len(atoms), 'stage')} that can be apart",
        )
    ]


def _placed(stages: Stages, refusals: list[Refusal]) -> list[Refusal]:
    return [r if r.where != "kernel" else Refusal(r.rule, "+".join(stages), r.why) for r in refusals]
