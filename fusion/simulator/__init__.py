"""Runs generated Ascend C on the CPU: numbers, order and an instruction trace from one execution."""

from fusion.simulator.buffers import Buffer
from fusion.simulator.findings import Finding, Place, verdict
from fusion.simulator.run import KernelRun, run_kernel

__all__ = ["Buffer", "Finding", "KernelRun", "Place", "run_kernel", "verdict"]
