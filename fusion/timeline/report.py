"""What a launch spends its time on: busy pipes, waiting by cause, the critical path by stage, and the bottleneck that follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from fusion.device import Device
from fusion.simulator.trace import PIPES
from fusion.timeline.launch import KindTime, Launched
from fusion.timeline.library import PIPES as PIPE_COUNT
from fusion.timeline.price import FIX, MTE2, MTE3, RUN, SCALAR, M

STREAMS = ("AIC", "AIV0", "AIV1")
CAUSES = (*(f"flag from {p}" for p in PIPES[:7]), "drain", "cross-core flag", "issue")
STEPS = 12_000  # of a critical path, from its end: enough for its composition
CLEAR = 1.25  # a class is named if its share is so much larger than the next one
StageOf = Callable[[str], str]


@dataclass(frozen=True)
class KernelTime:
    """A kernel's predicted latency and where it goes; all shares are of that latency. `critical_us` is of a typical block, by stage."""

    name: str
    us: float
    blocks: int
    busy: Mapping[str, float]
    waits: Mapping[str, float]
    critical_us: Mapping[str, float]
    gm_bytes: int
    hbm_bytes: int
    duty: float
    tflops: float
    start_share: float
    bottleneck: str
    extrapolated: str
    launched: Launched

    def to_json(self) -> dict[str, object]:
        return {
            "kernel": self.name, "us": round(self.us, 2), "blocks": self.blocks, "bottleneck": self.bottleneck,
            "busy": {k: round(v, 4) for k, v in self.busy.items()}, "waits": {k: round(v, 4) for k, v in self.waits.items()},
            "critical_us": {k: round(v, 3) for k, v in self.critical_us.items()}, "gm_bytes": self.gm_bytes,
            "hbm_bytes": self.hbm_bytes, "tflops": round(self.tflops, 2), "extrapolated": self.extrapolated,
        }  # fmt: skip


def _average(launched: Launched, field: Callable[[KindTime], np.ndarray]) -> np.ndarray:
    """Over all blocks, ns of one core's share of the launch."""
    timed = [k for k in launched.kinds if k.schedule]
    total = sum(field(k) * k.stretch * k.kind.count for k in timed)
    known = sum(k.kind.count for k in timed)
    return np.asarray(total) / known


def _shares(launched: Launched, device: Device) -> tuple[dict[str, float], dict[str, float]]:
    cores = min(device.cube_cores, launched.outline.blocks)
    scale = launched.outline.blocks / cores / (launched.us * 1e3)
    busy = _average(launched, lambda k: k.schedule.busy if k.schedule else np.zeros(0)) * scale
    waits = _average(launched, lambda k: k.schedule.waits if k.schedule else np.zeros(0)) * scale
    by_pipe = {f"{STREAMS[s]}.{PIPES[p]}": float(busy[s, p]) for s in range(3) for p in range(PIPE_COUNT) if busy[s, p] > 1e-4}
    by_cause = {
        f"{STREAMS[s]} {CAUSES[c]}": float(waits[s, :, c].max())
        for s in range(3)
        for c in range(len(CAUSES))
        if waits[s, :, c].max() > 1e-3
    }
    return by_pipe, by_cause


def critical_path(kind: KindTime) -> list[tuple[int, float]]:
    """Records that the block's end waited for, last first, each with the ns that it adds."""
    found: list[tuple[int, float]] = []
    if kind.schedule is None:
        return found
    end, pred = kind.schedule.end, kind.schedule.pred
    work = np.isin(kind.kind.records["kind"], (RUN, SCALAR))
    at = int(np.argmax(np.where(work, end, -1.0)))
    while at >= 0 and len(found) < min(STEPS, len(end)):
        before = int(pred[at])
        since = float(end[before]) if before >= 0 else 0.0
        found.append((at, max(0.0, float(end[at]) - since)))
        at = before
    return found


def _by_stage(launched: Launched, stage_of: StageOf) -> dict[str, float]:
    kind = max((k for k in launched.kinds if k.schedule), key=lambda k: k.kind.count)
    source, found = launched.outline.source, dict[str, float]()
    for at, ns in critical_path(kind):
        line = int(kind.kind.records["line"][at])
        stage = stage_of(source[line - 1]) if 0 < line <= len(source) else ""
        found[stage or "other"] = found.get(stage or "other", 0.0) + ns / 1e3
    scale = kind.us / max(sum(found.values()), 1e-9)  # a path that was cut is taken to go on alike
    found = {s: us * min(scale, 1e9) for s, us in found.items()}
    return dict(sorted(found.items(), key=lambda kv: (-kv[1], kv[0])))


def flops(launched: Launched) -> float:
    """Multiplications and additions of the Cube over all blocks."""
    total = 0.0
    for k in launched.kinds:
        r = k.kind.records
        mine = r[(r["pipe"] == M) & (r["kind"] == RUN)]
        total += 2.0 * float(np.sum(mine["m"].astype(np.float64) * mine["n"] * mine["k"])) * k.kind.more * k.kind.count
    return total * launched.outline.blocks / max(1, sum(k.kind.count for k in launched.kinds))


def composition(kind: KindTime) -> dict[str, float]:
    """What the critical path of a block is made of, in ns: work of V, M and MTE1, transfers, and synchronization.

    Synchronization is all that lies between two instructions: flags and their latency, issue, and the latency of transfers.
    """
    found = {"compute-bound": 0.0, "memory-bound": 0.0, "sync-bound": 0.0}
    if kind.schedule is None:
        return found
    for at, added in critical_path(kind):
        record = kind.kind.records[at]
        moves = record["pipe"] in (MTE2, MTE3, FIX)
        latency = float(kind.latency[at])
        work = min(added, max(0.0, float(kind.schedule.end[at] - kind.schedule.start[at]) - latency))
        found["memory-bound" if moves else "compute-bound"] += work
        found["sync-bound"] += added - work
    return found


def classify(parts: Mapping[str, float]) -> str:
    """The largest part of the critical path if it is clearly larger than the next, else mixed."""
    (first, high), (_, second), *_ = sorted(parts.items(), key=lambda kv: (-kv[1], kv[0]))
    return first if high > CLEAR * second else "mixed"


def kernel_time(name: str, launched: Launched, device: Device, stage_of: StageOf | None = None) -> KernelTime:
    """Sums a launch up. `stage_of` gives the stage of a statement of the generated code."""
    busy, waits = _shares(launched, device)
    cores = min(device.cube_cores, launched.outline.blocks)
    start = launched.outline.blocks / cores * device["launch.block_start"] / (launched.us * 1e3)
    typical = max((k for k in launched.kinds if k.schedule), key=lambda k: k.kind.count)
    parts = {**composition(typical), "start-bound": device["launch.block_start"]}
    tflops = flops(launched) / launched.us / 1e6
    return KernelTime(
        name, launched.us, launched.outline.blocks, busy, waits, _by_stage(launched, stage_of or (lambda _: "")), launched.gm_bytes,
        launched.hbm_bytes, launched.duty, tflops, start, classify(parts), launched.outline.extrapolated, launched,
    )  # fmt: skip
