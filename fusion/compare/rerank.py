"""The best few estimated plans, in the order of their simulated time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fusion.device import Device
from fusion.emit.emit import emit
from fusion.emit.program import Program
from fusion.errors import FusionError
from fusion.output.summary import plan_us
from fusion.plan.planner import Planned
from fusion.plan.types import Plan
from fusion.timeline.program import PlanTime, lower_all, time_program

Prepare = Callable[[Plan], Plan]
TRIES = 3


@dataclass(frozen=True)
class Ranked:
    """A plan with its emitted program and timeline; `estimated_us` is the planner's estimate of it, passes included."""

    plan: Plan
    program: Program
    time: PlanTime
    estimated_us: float


def as_is(plan: Plan) -> Plan:
    return plan


def rerank(planned: Sequence[Planned], device: Device, prepare: Prepare = as_is) -> list[Ranked]:
    """All given plans lowered and simulated, fastest first. A plan that the compiler or a rule refuses is left out.

    Raises FusionError with the first refusal if none is left.
    """
    programs, estimates, problems = list[Program](), list[float](), list[FusionError]()
    for candidate in planned:
        try:
            programs.append(emit(prepare(candidate.plan), device.limits()))
            estimates.append(plan_us(programs[-1].plan))
        except FusionError as error:
            problems.append(error)
    found = list[Ranked]()
    for program, lowered, us in zip(programs, lower_all(programs), estimates, strict=True):
        try:
            found.append(Ranked(program.plan, program, time_program(program, device, lowered), us))
        except FusionError as error:
            problems.append(error)
    if not found and problems:
        raise problems[0]
    return sorted(found, key=lambda r: (r.time.us, r.estimated_us))
