"""free-handoff: the reader of a tile tells its writer that the tile may be written again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from fusion.passes import PassResult, PlanPass
from fusion.passes.check import limits_of, structure_of
from fusion.passes.options import chosen
from fusion.plan.device import Limits
from fusion.plan.rules import single_slots_are_ordered, slots_do_not_flood
from fusion.plan.structure import Structure
from fusion.plan.types import Handoff, Kernel, Plan, Refusal


@dataclass(frozen=True)
class FreeHandoff(PlanPass):
    """Adds a handoff back ("free") to every tile that a loop uses again although nothing orders its reader before its writer.

    Before: for k: Cube writes workspace_s, Vector reads it           the Cube may be an iteration ahead: write-after-read race
    After:  for k: Cube writes workspace_s, Vector reads it and sends a corner back, which the Cube waits for

    Options: `values` limits it to some (`s+dp`).
    Refuses when: the cross-core flags run out, or the tile is not handed over once in every iteration.
    Source: the compiler signals "ready" only; which handoffs need it is decided by the rules single-slots-are-ordered and
    slots-do-not-flood.
    """

    name: ClassVar[str] = "free-handoff"
    values: str = ""

    def apply(self, artefact: Plan) -> PassResult[Plan]:
        wanted = chosen(self.values, dict.fromkeys(h.value for k in artefact.kernels for h in k.handoffs), "handoff of")
        limits, refusals = limits_of(artefact), list[Refusal]()
        kernels = tuple(_freed(structure_of(artefact, k), k, limits, wanted, refusals) for k in artefact.kernels)
        after = replace(artefact, kernels=kernels)
        return PassResult(after, after != artefact, tuple(refusals))


def _freed(s: Structure, kernel: Kernel, limits: Limits, wanted: tuple[str, ...], refusals: list[Refusal]) -> Kernel:
    broken = {value for rule in (single_slots_are_ordered, slots_do_not_flood) for value, _ in rule(s, kernel, limits)}
    for h in (h for h in kernel.handoffs if h.value in broken and h.value in wanted):
        refusal = _refusal(kernel, h, limits)
        if refusal:
            refusals.append(refusal)
        else:
            free = replace(h, free=True, slots=0 if h.value in s.stored else 1)
            kernel = replace(kernel, handoffs=tuple(free if x == h else x for x in kernel.handoffs))
    return kernel


def _refusal(kernel: Kernel, h: Handoff, limits: Limits) -> Refusal | None:
    where = f"{kernel.name}.{h.value}"
    used = len(kernel.handoffs) + sum(x.free for x in kernel.handoffs)
    if used + 1 > limits.cross_flags:
        why = f"freeing {h.name} takes {used + 1} cross-core flags, the hardware has {limits.cross_flags}: split the kernel"
        return Refusal("flags-fit", where, why)
    if h.level == "epilogue" or (h.level == "prologue" and kernel.loops):
        why = f"{h.name} is handed over in the {h.level}, but the wait for a free tile stands at the end of every iteration"
        return Refusal("free-in-every-iteration", where, why)
    return None
