"""From a plan to a program: every kernel's source and the host's part."""

from __future__ import annotations

from fusion.emit.host import host_program
from fusion.emit.kernel import emit_kernel
from fusion.emit.program import Program
from fusion.emit.wrapper import wrapper_source
from fusion.plan.device import Limits
from fusion.plan.tiling import Tiling
from fusion.plan.types import Plan


def emit(plan: Plan, limits: Limits | None = None) -> Program:
    """Kernels in launch order with the host program. Raises FusionError for a host stage that is no plain torch arithmetic."""
    cores = (limits or Limits()).cube_cores
    tiling = Tiling(plan.graph, plan.tiles)
    kernels = tuple(emit_kernel(tiling, k, cores) for k in plan.kernels)
    host = host_program(plan, kernels)
    return Program(plan, kernels, host, wrapper_source(plan, host))
