"""A first estimate of a kernel's time, in microseconds, from counts alone.

    us = launch + max over cores of ( blocks in sequence x ( block start + Cube + Vector + GM bytes / bandwidth + handoffs ) )

Cube and Vector work of one block overlap only where the kernel has both and loops, by `OVERLAP`. All constants are public figures or
rounded from them (device data: 910B3), so that the order of alternatives is plausible; absolute times are not calibrated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fusion.graph import Op, Stage
from fusion.graph.ops import OPS
from fusion.plan.structure import Structure
from fusion.plan.trips import visited
from fusion.plan.types import Kernel

CORES = 20  # Cube cores, each with two Vector cores
GHZ = 1.8
CUBE_MACS = 4096  # fp16 multiply-accumulates a cycle and core
VECTOR_BYTES = 256  # a cycle and Vector core
CHIP_GB_S = 1600.0
CORE_GB_S = 120.0
LAUNCH_US = 8.0  # launch and the gap before it
BLOCK_US = 1.4  # start of a block
TASK_US = 0.1  # start of a further task inside of a persistent block
HANDOFF_US = 0.55  # one Cube<->Vector handoff that nothing hides
VECTOR_START_US = 0.02  # start and drain of a Vector instruction on a tile
TRANSFER_US = 0.5  # latency of a transfer that nothing hides
ATOMIC_FACTOR = 1.6  # bytes added atomically, relative to plain ones
OVERLAP = 0.45  # share of the shorter unit's time that the longer one hides
HOST_US = 12.0  # a torch operation of the host wrapper, without its traffic


@dataclass(frozen=True)
class KernelCost:
    """Microseconds of a launch and what they are made of; GM bytes over all blocks."""

    us: float
    launch_us: float
    cube_us: float
    vector_us: float
    transfer_us: float
    handoff_us: float
    start_us: float
    gm_bytes: int

    @property
    def bottleneck(self) -> str:
        """The largest part."""
        parts = {"cube": self.cube_us, "vector": self.vector_us, "memory": self.transfer_us, "sync": self.handoff_us, "start": self.start_us}
        return max(sorted(parts), key=lambda k: parts[k])


def _points(structure: Structure, op: Op) -> int:
    return math.prod(structure.tiling.tile(d) for d in structure.graph.op_dims(op))


def _times(structure: Structure, out: str, steps: float) -> float:
    return steps if structure.levels[out] == "body" else 1.0


def _cube_us(structure: Structure, op: Op) -> float:
    size = structure.graph.value(op.reads[0]).itemsize
    return _points(structure, op) / (CUBE_MACS / (4 if size == 4 else 1)) / GHZ / 1e3 + 0.15


def _vector_us(structure: Structure, stage: Stage, op: Op, threads: int) -> float:
    if OPS[op.fn].form == "contract":
        return 0.0
    weight = OPS[op.fn].weight + (2.0 * len(op.where))
    wide = 2 if any(0 < len(structure.tiling.shape(r)) < len(structure.tiling.shape(op.out)) for r in op.reads) else 0
    size = structure.graph.value(op.out).itemsize
    return (weight + wide) * _points(structure, op) * size / VECTOR_BYTES / threads / GHZ / 1e3 + VECTOR_START_US * (1 + len(op.where))


def _tile_bytes(structure: Structure, value: str) -> int:
    shape = structure.tiling.shape(value)
    return (math.prod(structure.tiling.tile(d) for d in shape) if shape else 32) * structure.graph.value(value).itemsize


def _traffic(structure: Structure, kernel: Kernel, steps: float) -> tuple[float, float]:
    """GM bytes and number of transfers of one task."""
    total, count = 0.0, 0.0
    for name in structure.loaded:
        units = {s.unit for s, _ in structure.readers.get(name, ())} or {"vector"}
        times = steps if set(structure.graph.value(name).dims) & set(structure.loops) else 1.0
        total += _tile_bytes(structure, name) * times * len(units)
        count += times * len(units)
    direct = {h.value for h in kernel.handoffs if h.slots == 0}
    for name in structure.stored:
        times = 1.0 if structure.complete_after_loop(name) else _times(structure, name, steps)
        total += _tile_bytes(structure, name) * times * (ATOMIC_FACTOR if structure.atomic(name) else 1.0)
        count += times
    for h in kernel.handoffs:
        times = steps if h.level == "body" else 1.0
        total += _tile_bytes(structure, h.value) * times * (1 if h.value in direct else 2)
    return total, count


def estimate(structure: Structure, kernel: Kernel) -> KernelCost:
    """The estimate for one kernel."""
    steps = visited(structure)
    tasks = math.prod(structure.tiling.trips(d) for d in kernel.grid)
    cores = CORES if any(s.unit == "cube" for s, _ in structure.ops) or kernel.threads == 2 else 2 * CORES
    rounds = math.ceil(tasks / cores)
    busy = min(tasks, cores)
    cube = sum(_cube_us(structure, o) * _times(structure, o.out, steps) for s, o in structure.ops if OPS[o.fn].form == "contract")
    vector = sum(
        _vector_us(structure, s, o, kernel.threads) * _times(structure, o.out, steps)
        for s, o in structure.ops
        if s.unit == "vector" and o.out not in structure.absorbed
    )
    nbytes, count = _traffic(structure, kernel, steps)
    rate = min(CORE_GB_S, CHIP_GB_S / busy) * 1e3  # bytes a microsecond
    transfer = nbytes / rate + TRANSFER_US * min(count, 4.0 + count / 4)
    handoffs = sum((steps if h.level == "body" else 1.0) * HANDOFF_US * (2 if h.free else 1) for h in kernel.handoffs)
    start = TASK_US if kernel.persistent else BLOCK_US
    hidden = OVERLAP * min(cube, vector) if kernel.loops else 0.0
    task = start + cube + vector - hidden + transfer + handoffs
    us = LAUNCH_US + rounds * task + (BLOCK_US if kernel.persistent else 0.0)
    scale = float(rounds)
    return KernelCost(us, LAUNCH_US, cube * scale, vector * scale, transfer * scale, handoffs * scale, start * scale, round(nbytes * tasks))


def host_us(gm_bytes: int) -> float:
    """A host step that reads or writes so many bytes of device memory."""
    return HOST_US + gm_bytes / (CHIP_GB_S * 1e3)
