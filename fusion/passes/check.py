"""All that must hold of a plan, rule by rule, and the structures that the rules read."""

from __future__ import annotations

from collections.abc import Iterator

from fusion.graph import verify
from fusion.plan import device
from fusion.plan.device import Limits
from fusion.plan.rules import KERNEL_RULES, PLAN_RULES, memory_fits, structure_refusals
from fusion.plan.structure import Structure
from fusion.plan.tiling import Tiling
from fusion.plan.types import Kernel, Plan, Refusal


def limits_of(plan: Plan) -> Limits:
    """The limits of the plan's device."""
    return device.limits_of(plan.device)


def tiling_of(plan: Plan) -> Tiling:
    return Tiling(plan.graph, plan.tiles)


def structure_of(plan: Plan, kernel: Kernel) -> Structure:
    return Structure(tiling_of(plan), kernel.stages, kernel.grid, kernel.loops)


def kernel_problems(structure: Structure, kernel: Kernel, limits: Limits) -> Iterator[Refusal]:
    """Every rule that the kernel breaks: memory too, unless the buffers cannot be worked out."""
    found = list(structure_refusals(structure))
    if not found:
        found = [Refusal(rule.__name__.replace("_", "-"), *x) for rule in KERNEL_RULES for x in rule(structure, kernel, limits)]
        if all(r.rule not in ("handoffs-are-complete", "vector-cores-agree", "dims-are-placed") for r in found):
            found += [Refusal("memory-fits", *x) for x in memory_fits(structure, kernel, limits)]
    for r in found:
        yield r if r.where == kernel.name else Refusal(r.rule, f"{kernel.name}.{r.where}", r.why)


def plan_problems(plan: Plan) -> tuple[Refusal, ...]:
    """Every rule that the plan or one of its kernels breaks. Raises FusionError where its graph breaks an invariant."""
    verify(plan.graph)
    found = [Refusal(rule.__name__.replace("_", "-"), *x) for rule in PLAN_RULES for x in rule(plan)]
    if all(r.rule != "every-stage-runs-once" for r in found):
        limits = limits_of(plan)
        for kernel in plan.kernels:
            found += kernel_problems(structure_of(plan, kernel), kernel, limits)
    return tuple(dict.fromkeys(found))
