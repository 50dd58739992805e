"""The timeline of a whole plan: every kernel lowered, outlined and scheduled, with the launches and the host's part around them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fusion.cost.host import stages_us
from fusion.device import Device
from fusion.emit.emit import emit
from fusion.emit.program import KernelProgram, Program
from fusion.errors import FusionError
from fusion.plan.types import Plan
from fusion.timeline.floor import Floor, floor
from fusion.timeline.launch import time_launch
from fusion.timeline.record import buffers_of
from fusion.timeline.report import KernelTime, kernel_time
from fusion.timeline.store import recorded
from fusion.toolchain import KernelSource, Lowered, lower
from fusion.verify.places import origin

NAME = "fused"


@dataclass(frozen=True)
class PlanTime:
    """A plan's predicted time: `kernels_us` on the device, `us` with launch gaps and the host's part."""

    kernels: tuple[KernelTime, ...]
    gaps_us: float
    host_us: float
    floor: Floor
    notes: tuple[str, ...] = ()

    @property
    def kernels_us(self) -> float:
        return sum(k.us for k in self.kernels)

    @property
    def us(self) -> float:
        return self.kernels_us + self.gaps_us + self.host_us

    @property
    def bottleneck(self) -> str:
        """That of the longest kernel."""
        return max(self.kernels, key=lambda k: k.us).bottleneck


def time_kernel(kernel: KernelProgram, lowered: Lowered, device: Device) -> KernelTime:
    """The timeline of one emitted kernel; the same code is timed once, whatever the kernel is called."""
    key = (lowered.ascendc or "", device)
    if key not in _KNOWN:
        if len(_KNOWN) >= 256:
            _KNOWN.clear()
        _KNOWN[key] = _time_kernel(kernel, lowered, device)
    return replace(_KNOWN[key], name=kernel.name)


_KNOWN: dict[tuple[str, Device], KernelTime] = {}


def _time_kernel(kernel: KernelProgram, lowered: Lowered, device: Device) -> KernelTime:
    if lowered.error or not lowered.ascendc:
        what = lowered.error.message if lowered.error else "not lowered to Ascend C"
        raise FusionError(what, where=kernel.name)
    outline = recorded(lowered.ascendc, NAME, buffers_of(lowered))
    stages: dict[str, str] = {}

    def stage_of(statement: str) -> str:
        if statement not in stages:
            place = origin(kernel, statement)
            stages[statement] = place.stage if place else ""
        return stages[statement]

    return kernel_time(kernel.name, time_launch(outline, device), device, stage_of)


def time_program(program: Program, device: Device, lowered: Mapping[str, Lowered]) -> PlanTime:
    """The timeline of an emitted and lowered program."""
    kernels = tuple(time_kernel(k, lowered[k.name], device) for k in program.kernels)
    notes = tuple(f"{k.name}: too large to look at all of it; extrapolated from {k.extrapolated}" for k in kernels if k.extrapolated)
    gaps = device["launch.gap"] / 1e3 * len(kernels)
    graph, host = program.plan.graph, program.plan.host_stages
    return PlanTime(kernels, gaps, stages_us(graph, host, device), floor(graph, device), notes)


def lower_all(programs: Sequence[Program]) -> list[dict[str, Lowered]]:
    """The kernels of all programs, lowered in one batch; kernels with the same text but for their name once."""
    texts = list(dict.fromkeys(_unnamed(k) for p in programs for k in p.kernels))
    found = dict(zip(texts, lower([KernelSource(NAME, t) for t in texts]), strict=True))
    return [{k.name: found[_unnamed(k)] for k in p.kernels} for p in programs]


def _unnamed(kernel: KernelProgram) -> str:
    """The source with a neutral name for the kernel: plans number the same kernel differently."""
    return re.sub(rf"\b{re.escape(kernel.name)}\b", NAME, kernel.source)


def time_plan(plan: Plan, device: Device) -> PlanTime:
    """Emits, lowers and schedules a plan."""
    program = emit(plan, device.limits())
    (lowered,) = lower_all([program])
    return time_program(program, device, lowered)
