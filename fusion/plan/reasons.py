"""Why an operator has no plan with so many kernels: the rule in the way, the stages that it concerns, and which counts work."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import TYPE_CHECKING

from fusion.errors import FusionError
from fusion.graph import StageGraph
from fusion.plan.realize import distance, why_not
from fusion.plan.tiling import Tiling, ranked_dims, tilings, whole_dims
from fusion.plan.types import Kernel, Refusal
from fusion.words import count, either

if TYPE_CHECKING:
    from fusion.plan.planner import Planner

MOST_TRIED = 32  # tilings that are looked at for the reason of a refusal
MENDED_BY_OTHERS = ("masks-stay-in-ub", "numbers-meet-tiles", "phases-share-outputs", "masked-tiles-are-skipped", "one-block-stores")
"""Rules that a stage may break by itself, and not together with those it works with."""


def impossible(planner: Planner, target: int) -> FusionError:
    """Why no plan has `target` kernels, with the nearest counts that work."""
    most = len(planner.atoms)
    works = [n for n, found in planner.possible(tuple(range(1, most + 1)), 1).items() if found]
    if target > most:
        what = f"the operator has {count(most, 'stage')} that can be apart"
        return FusionError(f"--target {target}: {what}", where=planner.graph.name, remedy=_near(works, target))
    remedy = _near(works, target)
    if not works:
        reason, mended = _no_count(planner)
        remedy += f"; {mended}" if mended else ""
    else:
        reason = _too_few(planner, works[0]) if target < works[0] else _too_many(planner)
    return FusionError(f"--target {target} is impossible: {reason}", where=planner.graph.name, remedy=remedy)


def _near(works: list[int], target: int) -> str:
    """The nearest counts below and above that work, with the option to type."""
    near = [*[n for n in works if n < target][-1:], *[n for n in works if n > target][:1]]
    if not near:
        return "no count works for these shapes"
    label = "nearest count that works" if len(near) == 1 else "nearest counts that work"
    return f"{label}: {' and '.join(map(str, near))} ({either([f'--target {n}' for n in near])})"


def _too_few(planner: Planner, least: int) -> str:
    """The rule that forbids two kernels of the plan with the fewest kernels to be one: of all pairs, the one that breaks least."""
    plan = planner.possible((least,), 1)[least][0].plan
    pairs = list(itertools.combinations(plan.kernels, 2))
    for tried in (_few(planner), [Tiling(planner.graph, plan.tiles)]):
        found = [(pair, _refusals(planner, _together(planner, pair), tried)) for pair in pairs]
        pair, refusals = min(((p, r) for p, r in found if r), key=lambda x: distance(x[1]), default=(None, []))
        if pair:
            at = f"with tiles {_sizes(tried[0])}, " if len(tried) == 1 else ""
            return f"{at}{refusals[0]}" + ("" if least == 2 else f", if {_named(pair)} are one kernel")
    return "of the smallest plan, no two kernels can be merged without a third one between them"


def _sizes(tiling: Tiling) -> str:
    return " ".join(f"{d}={t}" for d, t in tiling.tiles)


def _together(planner: Planner, kernels: Iterable[Kernel]) -> tuple[str, ...]:
    inside = {s for k in kernels for s in k.stages}
    return tuple(s.name for s in planner.graph.stages if s.name in inside)


def _named(kernels: Iterable[Kernel]) -> str:
    return " and ".join(f"[{' '.join(k.stages)}]" for k in kernels)


def _too_many(planner: Planner) -> str:
    """The first stage that cannot be a kernel of its own, and why."""
    for atom, stages in planner.atoms.items():
        if refusals := _refusals(planner, stages):
            return f"{refusals[0]}, if {atom} is a kernel of its own"
    return _no_common_tiles(planner)


def _no_common_tiles(planner: Planner) -> str:
    """The tile sizes that suit most stages as kernels of their own, and the rule that a stage breaks under them: all kernels share them."""
    told = [(t, [r for stages in planner.atoms.values() if (r := why_not(t, stages, planner.limits))]) for t in _few(planner)]
    tiling, broken = min(told, key=lambda x: len(x[1]))
    if not broken:
        return "every stage can be a kernel, but not with what the others leave in GM"
    return f"no tile sizes suit all stages as kernels of their own: with {_sizes(tiling)}, {broken[0][0]}"


def _no_count(planner: Planner) -> tuple[str, str]:
    """The rule that a stage breaks in whatever kernel; else one that it breaks alone and with its neighbours. And what would mend it."""
    alone = {atom: refusals for atom, stages in planner.atoms.items() if (refusals := _refusals(planner, stages))}
    for atom, refusals in alone.items():
        if refusals[0].rule not in MENDED_BY_OTHERS:
            return str(refusals[0]), _mended(planner.graph, planner.atoms[atom])
    for atom, refusals in alone.items():
        joined = [r for other in _neighbours(planner, atom) if (r := _refusals(planner, _stages(planner, (atom, other))))]
        best = min(joined, key=distance, default=[])
        return f"{refusals[0]}" + (f"; together with its neighbours: {best[0]}" if best else ""), ""
    return _no_common_tiles(planner), ""


def _mended(graph: StageGraph, stages: tuple[str, ...]) -> str:
    """What a stage that works twice on a long row can do: its tile must hold the row."""
    for dim, value in whole_dims(graph).items():
        stage = graph.producer(value) or ""
        if stage in stages:
            hints, size = graph.dim(dim).tiles, graph.dim(dim).size
            if hints and max(hints) < size:
                return f"leave out tiles={hints} of dim {dim}: stage {stage} needs all of {dim} in one tile, for {value}"
            needs = f"stage {stage} needs all of {dim} in one tile, for {value}"
            if dim in ranked_dims(graph):
                return f"{needs}: rank a shorter row"
            return f"{needs}: read {value} in a stage of its own, or make it a state of a scan"
    return ""


def _neighbours(planner: Planner, atom: str) -> list[str]:
    return sorted({*planner.parts.order.predecessors(atom), *planner.parts.order.successors(atom)})


def _stages(planner: Planner, atoms: Iterable[str]) -> tuple[str, ...]:
    return planner.parts.stages_of(frozenset(atoms))


def _refusals(planner: Planner, stages: tuple[str, ...], tried: list[Tiling] | None = None) -> list[Refusal]:
    """What forbids a kernel with these stages, under the tiling that comes nearest; empty if some tiling allows it."""
    found: list[list[Refusal]] = []
    for tiling in tried or _few(planner):
        refusals = why_not(tiling, stages, planner.limits)
        if not refusals:
            return []
        found.append(refusals)
    return min(found, key=distance, default=[])


def _few(planner: Planner) -> list[Tiling]:
    return list(itertools.islice(tilings(planner.graph), MOST_TRIED))
