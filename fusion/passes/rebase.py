"""Fits a plan to a rewritten graph: same stages, grid, loops and choices, with handoffs and placements worked out again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from fusion.cost.host import stages_us
from fusion.cost.model import estimate
from fusion.device import load
from fusion.graph import StageGraph
from fusion.passes.base import PassResult
from fusion.passes.check import kernel_problems, limits_of, plan_problems, structure_of
from fusion.plan.realize import default_kernel, placed
from fusion.plan.tiling import tilings
from fusion.plan.types import Kernel, Plan


def rebase(plan: Plan, graph: StageGraph, retile: bool = False) -> PassResult[Plan]:
    """The plan for the graph; the plan as it was, with the refusals, if the new one breaks a rule that the old one did not.

    With `retile` the cheapest of the smaller tilings that break no rule is taken before refusing.
    """
    before = {(r.rule, r.where) for r in plan_problems(plan)}
    wanted = rebased(plan, graph, plan.tiles)
    problems = plan_problems(wanted)
    if all((r.rule, r.where) in before for r in problems):
        return PassResult(wanted, wanted != plan)
    fits = (p for t in _smaller(plan, graph) if not plan_problems(p := rebased(plan, graph, t))) if retile else iter(())
    best = min(fits, key=lambda p: (cost_us(p), p.tiles), default=None)
    if best is not None:
        return PassResult(best, True)
    return PassResult(plan, False, tuple(r for r in problems if (r.rule, r.where) not in before))


def cost_us(plan: Plan) -> float:
    """The estimated time of all kernels and of the host's stages."""
    device = load(plan.device)
    kernels = sum(estimate(structure_of(plan, k), k, device).us for k in plan.kernels)
    return kernels + stages_us(plan.graph, plan.host_stages, device)


def _smaller(plan: Plan, graph: StageGraph) -> Iterator[tuple[tuple[str, int], ...]]:
    now = dict(plan.tiles)
    for t in tilings(graph):
        if t.tiles != plan.tiles and set(dict(t.tiles)) == set(now) and all(size <= now[d] for d, size in t.tiles):
            yield t.tiles


def rebased(plan: Plan, graph: StageGraph, tiles: tuple[tuple[str, int], ...]) -> Plan:
    """The plan for another graph or other tiles, not checked."""
    moved = replace(plan, graph=graph, tiles=tiles)
    return replace(moved, kernels=tuple(_kernel(plan, moved, k) for k in plan.kernels))


def _kernel(before: Plan, after: Plan, old: Kernel) -> Kernel:
    """The kernel with its handoffs as they were chosen, or as they are safe where that breaks a rule that held before.

    Safe are the planner's own handoffs, in the last resort with one block for each task instead of persistent blocks.
    """
    structure, limits = structure_of(after, old), limits_of(after)
    fresh = default_kernel(structure, old.name, limits)
    fresh = replace(fresh, stages=old.stages, persistent=old.persistent, threads=min(old.threads, fresh.threads))
    chosen = {h.value: h for h in old.handoffs}
    kept = tuple(replace(chosen.get(h.value, h), level=h.level, direction=h.direction) for h in fresh.handoffs)
    same = replace(fresh, threads=old.threads, handoffs=kept)
    known = {r.rule for r in kernel_problems(structure_of(before, old), old, limits)}
    if any(r.rule not in known for r in kernel_problems(structure, same, limits)):
        safe = (fresh, replace(fresh, persistent=False))
        return placed(structure, next((k for k in safe if not any(True for _ in kernel_problems(structure, k, limits))), same))
    return placed(structure, same)
