"""The numbers of a plan that the table, the JSON and the explanation show."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from fusion.cost.host import stages_us
from fusion.cost.model import estimate, interval
from fusion.device import load
from fusion.emit.gm import gm_tensor
from fusion.emit.program import KernelProgram, Program
from fusion.output.flags import flag_ids
from fusion.plan.device import Limits
from fusion.plan.memory import on_chip
from fusion.plan.structure import Structure
from fusion.plan.tiling import Tiling
from fusion.plan.types import Handoff, Kernel, Plan


@dataclass(frozen=True)
class HandoffSummary:
    """A handoff with the flag that the compiler gave it; None without generated code."""

    handoff: Handoff
    flag: int | None
    free_flag: int | None


@dataclass(frozen=True)
class MemoryUse:
    """Bytes of a kernel's buffers in one memory of a core, with all of them live at once, against what there is."""

    memory: str
    used: int
    limit: int


@dataclass(frozen=True)
class KernelSummary:
    kernel: Kernel
    blocks: int
    memories: tuple[MemoryUse, ...]
    handoffs: tuple[HandoffSummary, ...]
    workspace_bytes: int
    cost_us: float
    bottleneck: str


@dataclass(frozen=True)
class Summary:
    """`between_bytes` are GM tensors that one kernel leaves for another; `host_us` is the host's own work."""

    plan: Plan
    kernels: tuple[KernelSummary, ...]
    between_bytes: int
    host_syncs: int
    host_us: float

    @property
    def workspace_bytes(self) -> int:
        return sum(k.workspace_bytes for k in self.kernels)

    @property
    def total_us(self) -> float:
        return sum(k.cost_us for k in self.kernels) + self.host_us

    @property
    def interval(self) -> float:
        """The relative half width of the estimated times."""
        return interval(load(self.plan.device), self.plan.graph.name)


def summarize(program: Program, limits: Limits, ascendc: Mapping[str, str]) -> Summary:
    """The numbers of a program; `ascendc` is the generated code by kernel name, where there is some."""
    by_name = {p.name: p for p in program.kernels}
    kernels = tuple(_kernel(program.plan, k, by_name[k.name], limits, ascendc.get(k.name, "")) for k in program.plan.kernels)
    host = stages_us(program.plan.graph, program.plan.host_stages, load(program.plan.device))
    return Summary(program.plan, kernels, between_bytes(program.plan), program.host.host_syncs, host)


def structure_of(plan: Plan, kernel: Kernel) -> Structure:
    return Structure(Tiling(plan.graph, plan.tiles), kernel.stages, kernel.grid, kernel.loops)


def plan_us(plan: Plan) -> float:
    """The estimate for a whole plan on its device."""
    device = load(plan.device)
    kernels = sum(estimate(structure_of(plan, k), k, device).us for k in plan.kernels)
    return kernels + stages_us(plan.graph, plan.host_stages, device)


def _kernel(plan: Plan, kernel: Kernel, program: KernelProgram, limits: Limits, ascendc: str) -> KernelSummary:
    structure = structure_of(plan, kernel)
    flags = flag_ids(ascendc)
    memories = tuple(MemoryUse(m, used, limits.memory(m)) for m, used, _ in on_chip(structure, kernel))
    handoffs = tuple(HandoffSummary(h, flags.get(h.name), flags.get(f"{h.name}_free")) for h in kernel.handoffs)
    cost = estimate(structure, kernel, load(plan.device))
    return KernelSummary(kernel, program.blocks, memories, handoffs, program.workspace_bytes, cost.us, cost.bottleneck)


def between_bytes(plan: Plan) -> int:
    """GM bytes of the values that one kernel leaves for another, or for the host to finish."""
    graph, tiling, total = plan.graph, Tiling(plan.graph, plan.tiles), 0
    owner = {s: k.name for k in plan.kernels for s in k.stages}
    for value in (v for v in graph.values if v.role == "intermediate"):
        source = graph.producer(value.name)
        if source in owner and any(owner.get(r) != owner[source] for r in graph.readers(value.name)):
            total += math.prod(gm_tensor(tiling, value).shape) * value.itemsize
    return total
