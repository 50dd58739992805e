"""The planner's estimate of a kernel's time, in microseconds, from the numbers of a device: no code is made for it.

    us = task + rounds x (start + chain)       chain = Cube + Vector - OVERLAP x min(Cube, Vector) + handoffs

Cube and Vector are the times of a block's own work on either unit: its instructions, its loads (latency + bytes / rate) and its stores.
The overlap is what the simulated timeline shows on average for generated kernels; see docs/timeline.md for the agreement of the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from fusion.cost.terms import Terms, terms
from fusion.device import Device, load
from fusion.graph.ops import OPS
from fusion.plan.structure import Structure
from fusion.plan.trips import visited
from fusion.plan.types import Kernel

OVERLAP = 0.85  # share of the shorter unit's time that the longer one hides
HIDDEN = 0.6  # share of a transfer's latency that other work hides
UNCERTAINTY = 0.15  # mean error of a kernel against the timeline, see docs/timeline.md
TASK_US = 0.1  # scalar work of a further task inside of a persistent block


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
        parts = {
            "cube": self.cube_us,
            "vector": self.vector_us,
            "memory": self.transfer_us,
            "sync": self.handoff_us,
            "start": self.start_us,
        }
        return max(sorted(parts), key=lambda k: parts[k])


def interval(device: Device, operator: str) -> float:
    """The relative half width of an estimate: how far the timeline may be off, and the estimate from the timeline."""
    return math.hypot(device.interval_of(operator), UNCERTAINTY)


@dataclass(frozen=True)
class _Rates:
    """The numbers of a device that every estimate needs, in microseconds and bytes a microsecond."""

    latency: float
    store: float
    cross: float
    cube: float
    vector: float
    fix: float
    chip: float
    ddr: float
    atomic: float
    start: float
    launch: float
    cores: int


@lru_cache(maxsize=8)
def _rates(device: Device) -> _Rates:
    us, rate = 1e-3, 1e3
    return _Rates(
        device["gm.latency"] * us,
        device["gm.store_latency"] * us,
        device["sync.cross_latency"] * us,
        device["gm.cube_rate"] * rate,
        device["gm.vector_rate"] * rate,
        device["gm.fix_rate"] * rate,
        device.chip_rate(0.6) * rate,
        device["gm.ddr_rate"] * rate,
        device["gm.atomic_factor"],
        device["launch.block_start"] * us,
        (device["launch.task"] + device["launch.gap"]) * us,
        device.cube_cores,
    )


@dataclass
class _Sums:
    """What one task adds up to, by unit."""

    work: dict[str, float]
    move: dict[str, float]
    handoff: float = 0.0
    nbytes: float = 0.0


def _operations(structure: Structure, known: Terms, threads: int, steps: float, sums: _Sums) -> None:
    levels, absorbed = structure.levels, structure.absorbed
    for stage, op in structure.ops:
        times = steps if levels[op.out] == "body" else 1.0
        if OPS[op.fn].form == "contract":
            sums.work["cube"] += times * known.cube_us(op)
        elif stage.unit == "vector" and op.out not in absorbed:
            sums.work["vector"] += times * known.vector_us(op, threads)


def _move(sums: _Sums, unit: str, nbytes: float, times: float, rate: float, latency: float) -> None:
    sums.move[unit] += times * (nbytes / rate + latency * (1.0 - HIDDEN))
    sums.nbytes += times * nbytes


def _loads(structure: Structure, known: Terms, rates: _Rates, steps: float, tasks: int, sums: _Sums) -> None:
    loops = set(structure.loops)
    for name in structure.loaded:
        dims = structure.graph.value(name).dims
        size = structure.graph.size(dims) * structure.graph.value(name).itemsize
        times = steps if loops.intersection(dims) else 1.0
        for unit in {s.unit for s, _ in structure.readers.get(name, ())} or {"vector"}:
            side = rates.cube if unit == "cube" else rates.vector
            missing = min(1.0, size / (known.nbytes(name) * times * tasks))  # first touches come from HBM
            _move(sums, unit, known.nbytes(name), times, 1.0 / ((1.0 - missing) / side + missing / rates.ddr), rates.latency)


def _stores(structure: Structure, known: Terms, rates: _Rates, steps: float, sums: _Sums) -> None:
    for name in structure.stored:
        times = 1.0 if structure.complete_after_loop(name) or structure.levels[name] != "body" else steps
        unit = structure.unit(name) or "vector"
        weight = rates.atomic if structure.atomic(name) else 1.0
        _move(sums, unit, known.nbytes(name) * weight, times, rates.fix if unit == "cube" else rates.vector, rates.store)


def _handoffs(structure: Structure, kernel: Kernel, known: Terms, rates: _Rates, steps: float, sums: _Sums) -> None:
    """Store, flag, load: the writer's and the reader's transfer, and the latencies that the reader waits for."""
    for h in kernel.handoffs:
        times, nbytes = (steps if h.level == "body" else 1.0), known.nbytes(h.value)
        from_cube = h.direction == "cube->vector"
        if h.slots or h.value not in structure.stored:
            _move(sums, "cube" if from_cube else "vector", nbytes, times, rates.fix if from_cube else rates.vector, 0.0)
        _move(sums, "vector" if from_cube else "cube", nbytes, times, rates.vector if from_cube else rates.cube, 0.0)
        sums.handoff += times * (rates.store + rates.cross * (2 if h.free else 1) + rates.latency)


def estimate(structure: Structure, kernel: Kernel, device: Device | None) -> KernelCost:
    """The estimate for one kernel on a device; None for the 910B3."""
    device = device or load()
    rates, known, steps = _rates(device), terms(structure.tiling, device), visited(structure)
    sums = _Sums({"cube": 0.0, "vector": 0.0}, {"cube": 0.0, "vector": 0.0})
    tasks = math.prod(structure.tiling.trips(d) for d in kernel.grid)
    _operations(structure, known, kernel.threads, steps, sums)
    _loads(structure, known, rates, steps, tasks, sums)
    _stores(structure, known, rates, steps, sums)
    _handoffs(structure, kernel, known, rates, steps, sums)
    busy = min(tasks, rates.cores)
    cube, vector = (sums.work[u] + sums.move[u] for u in ("cube", "vector"))
    chain = cube + vector - OVERLAP * min(cube, vector) + sums.handoff
    chain = max(chain, sums.nbytes * busy / rates.chip)
    start = TASK_US if kernel.persistent else rates.start
    rounds = float(math.ceil(tasks / rates.cores))
    us = rates.launch + rounds * (start + chain) + (rates.start if kernel.persistent else 0.0)
    return KernelCost(
        us,
        rates.launch,
        sums.work["cube"] * rounds,
        sums.work["vector"] * rounds,
        (sums.move["cube"] + sums.move["vector"]) * rounds,
        sums.handoff * rounds,
        start * rounds,
        round(sums.nbytes * tasks),
    )
