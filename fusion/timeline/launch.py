"""One launch in time: every kind of block on one core, blocks over the cores, and the bandwidth that the cores share.

A core's share of the chip's bandwidth is chip / (cores x duty), where duty is the share of the time in which a core has a transfer under
way. Duty follows from the schedule, so it is found by repeating: two or three rounds are enough.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from fusion.device import Device
from fusion.errors import FusionError
from fusion.timeline.library import Scheduled, schedule
from fusion.timeline.price import Records, price
from fusion.timeline.record import BlockKind, Outline, Traffic

ROUNDS = 3
BUDGET = 150_000  # instructions to schedule for one launch; kinds beyond are scaled from the nearest by their instruction count
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class KindTime:
    """A kind of block with its time on a core; `schedule` is None where the time was scaled from another kind's.

    A schedule of streams that were cut ends before the block does.
    """

    kind: BlockKind
    us: float
    schedule: Scheduled | None
    latency: npt.NDArray[np.float64]  # ns of each record between its end on the pipe and the moment that a flag may tell

    @property
    def stretch(self) -> float:
        """The time of the block over that of its schedule."""
        return self.us * 1e3 / self.schedule.ns if self.schedule and self.schedule.ns else 1.0


@dataclass(frozen=True)
class Launched:
    """A launch's time in microseconds and what it was made from. `gm_bytes` over all blocks; `hbm_bytes` of these miss L2."""

    outline: Outline
    us: float
    kinds: tuple[KindTime, ...]
    core_rate: float
    duty: float
    gm_bytes: int
    hbm_bytes: int


@lru_cache(maxsize=256)
def _adding_lines(source: tuple[str, ...]) -> Bools:
    return np.array([False, *("atomic_add" in text for text in source)])


def atomic_records(outline: Outline, kind: BlockKind) -> Bools:
    """Which records add to GM: those of lines that call an atomic add."""
    lines = _adding_lines(outline.source)
    return lines[np.minimum(kind.records["line"], len(lines) - 1)]


@lru_cache(maxsize=256)
def totals(outline: Outline) -> tuple[Traffic, ...]:
    """What all blocks load and store, by buffer."""
    scale = outline.blocks / max(1, sum(k.count for k in outline.kinds))
    found = list[Traffic]()
    for same in zip(*(k.traffic for k in outline.kinds), strict=True):
        loaded, stored = (
            sum(getattr(t, field) * k.count for t, k in zip(same, outline.kinds, strict=True)) for field in ("loaded", "stored")
        )
        found.append(Traffic(same[0].name, same[0].nbytes, round(loaded * scale), round(stored * scale)))
    return tuple(found)


def traffic(outline: Outline) -> tuple[int, int]:
    """GM bytes moved by all blocks, and how many of them have to come from or go to HBM: every touched byte once."""
    return sum(t.moved for t in totals(outline)), sum(min(t.moved, t.nbytes) for t in totals(outline))


def missing_share(outline: Outline, kind: BlockKind) -> npt.NDArray[np.float64]:
    """The share of each record's load that is not in L2: first touches of what the kernel has not written itself."""
    by_buffer = [min(t.nbytes, t.loaded) / t.loaded if t.loaded and not t.stored else 0.0 for t in totals(outline)]
    return np.array([*by_buffer, 0.0])[kind.buffer]


def _rates(device: Device, core_rate: float) -> tuple[float, float, float, float]:
    return device["gm.cube_rate"], device["gm.vector_rate"], core_rate, device["sync.cross_latency"]


def _items(outline: Outline, kind: BlockKind, device: Device) -> Records:
    return price(kind.records, device, atomic_records(outline, kind), missing_share(outline, kind))


def _schedule(outline: Outline, index: int, items: Records, device: Device, core_rate: float) -> Scheduled:
    found = schedule(items, outline.vectors, _rates(device, core_rate), beginning=outline.kinds[index].cut)
    if found is None:
        raise FusionError("the instruction stream of a block never ends: a flag is waited for that nothing sets", where=outline.kernel)
    return found


def _chosen(outline: Outline) -> list[int]:
    """Kinds to schedule: those of the most blocks first, as far as the budget goes."""
    order = sorted(range(len(outline.kinds)), key=lambda i: (-outline.kinds[i].count, i))
    chosen, left = list[int](), BUDGET
    for i in order:
        if not chosen or left >= len(outline.kinds[i].records):
            chosen.append(i)
            left -= len(outline.kinds[i].records)
    return chosen


def _share(outline: Outline, device: Device, hit: float) -> tuple[float, float]:
    """A core's share of the chip's bandwidth, and the duty it follows from."""
    cores = min(device.cube_cores, outline.blocks)
    index = _chosen(outline)[0]
    typical = _items(outline, outline.kinds[index], device)
    duty = 1.0
    for _ in range(ROUNDS):
        rate = device.chip_rate(hit) / (cores * duty)
        found = _schedule(outline, index, typical, device, rate)
        seen = found.flow_ns / (found.ns + device["launch.block_start"]) if found.ns else 0.0
        duty = min(1.0, max(0.5 * (duty + seen), 1.0 / cores))
    return device.chip_rate(hit) / (cores * duty), duty


def makespan(times: npt.NDArray[np.float64], cores: int) -> float:
    """Blocks in order, each to the core that is free first."""
    if len(times) <= cores:
        return float(times.max(initial=0.0))
    free = [0.0] * cores
    for t in times:
        heapq.heapreplace(free, free[0] + float(t))
    return max(free)


def time_launch(outline: Outline, device: Device) -> Launched:
    """The time of a launch: fixed part + makespan of (block start + block) over the cores."""
    if not outline.kinds:
        raise FusionError("the kernel issues no instruction", where=outline.kernel)
    gm, hbm = traffic(outline)
    core_rate, duty = _share(outline, device, 1.0 - hbm / gm if gm else 1.0)
    items = {i: _items(outline, outline.kinds[i], device) for i in _chosen(outline)}
    done = {i: _schedule(outline, i, items[i], device, core_rate) for i in items}
    per_kind = [_timed(outline, i, done, items) for i in range(len(outline.kinds))]
    times = np.array([k.us for k in per_kind]) + device["launch.block_start"] / 1e3
    us = device["launch.task"] / 1e3 + makespan(times[np.array(outline.kind_of)], device.cube_cores)
    return Launched(outline, us, tuple(per_kind), core_rate, duty, gm, hbm)


def _timed(outline: Outline, index: int, done: dict[int, Scheduled], items: dict[int, Records]) -> KindTime:
    kind = outline.kinds[index]
    if index in done:
        return KindTime(kind, block_us(kind, done[index]), done[index], items[index]["latency"].astype(np.float64))
    near = min(done, key=lambda i: (abs(outline.kinds[i].total - kind.total), i))
    return KindTime(kind, block_us(outline.kinds[near], done[near]) * kind.total / outline.kinds[near].total, None, np.zeros(0))


def block_us(kind: BlockKind, scheduled: Scheduled) -> float:
    """The time of a block of this kind. What was cut off its streams goes on at the pace of the second half of what was scheduled."""
    if not kind.cut:
        return scheduled.ns / 1e3
    starts = np.sort(scheduled.start[scheduled.start >= 0])
    second = len(starts) - len(starts) // 2
    pace = (scheduled.ns - starts[len(starts) // 2]) / second
    return float(scheduled.ns + pace * (kind.total - len(starts))) / 1e3
