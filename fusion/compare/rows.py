"""One row a plan: its shape, its predicted time, and the verdict next to the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fusion.compare.published import published
from fusion.emit.program import Program
from fusion.output.summary import Summary
from fusion.timeline.program import PlanTime


@dataclass(frozen=True)
class Entry:
    """A plan in the comparison. `predicted_us` is what the verdict goes by; `error` says why there is no time.

    `measured_us` and `handwritten_us` belong to a published variant: what a device took for its main part, and what the timeline says
    for the hand-written kernels of it. `main_us` is the timeline of the same part as emitted here.
    """

    plan: str
    kernels: int
    predicted_us: float | None
    estimated_us: float | None
    interval: float
    floor_us: float
    program: Program | None = None
    summary: Summary | None = None
    time: PlanTime | None = None
    measured_us: float | None = None
    handwritten_us: float | None = None
    error: str = ""
    verdict: str = ""

    @property
    def main_us(self) -> float | None:
        """Device time of the kernels with a stage of the part whose latencies are published; of all kernels if none are."""
        if self.time is None or self.program is None:
            return None
        known = published(self.program.plan.graph.name)
        main = {k.name for k in self.program.plan.kernels if known is None or known.main & set(k.stages)}
        return sum(k.us for k in self.time.kernels if k.name in main)

    def peak(self, memory: str) -> int:
        """The largest use of an on-chip memory by a kernel, in bytes."""
        uses = [m.used for k in self.summary.kernels for m in k.memories if m.memory == memory] if self.summary else []
        return max(uses, default=0)

    def to_json(self) -> dict[str, object]:
        def rounded(x: float | None) -> float | None:
            return None if x is None else round(x, 1)

        return {
            "plan": self.plan,
            "kernels": self.kernels,
            "predicted_us": rounded(self.predicted_us),
            "measured_us": rounded(self.measured_us),
            "floor_us": rounded(self.floor_us),
            "verdict": self.verdict,
            "interval": self.interval,
            "handwritten_us": rounded(self.handwritten_us),
            "main_us": rounded(self.main_us),
            "estimated_us": rounded(self.estimated_us),
            "launches": self.program.host.launches if self.program else self.kernels,
            "host_syncs": self.summary.host_syncs if self.summary else None,
            "workspace_bytes": self.summary.workspace_bytes if self.summary else None,
            "between_bytes": self.summary.between_bytes if self.summary else None,
            "ub_bytes": self.peak("ub"),
            "l1_bytes": self.peak("l1"),
            "l0c_bytes": self.peak("l0c"),
            "bottleneck": self.time.bottleneck if self.time else None,
            "error": self.error,
            "kernel_times": [k.to_json() for k in self.time.kernels] if self.time else [],
        }


def judged(entries: Sequence[Entry]) -> list[Entry]:
    """Fills in the verdicts: best, a tie with it inside of the interval, or how much slower."""
    timed = [e for e in entries if e.predicted_us is not None]
    best = min(timed, key=lambda e: (e.predicted_us or 0.0, e.kernels), default=None)
    return [replace(e, verdict=_verdict(e, best)) for e in entries]


def _verdict(entry: Entry, best: Entry | None) -> str:
    if entry.predicted_us is None or best is None or best.predicted_us is None:
        return "no plan" if entry.error else "not predicted"
    slower = entry.predicted_us / best.predicted_us - 1.0
    if entry is best:
        return "best"
    if slower <= entry.interval:
        return f"tie (+{100 * slower:.0f} %)"
    return f"slower (+{100 * slower:.0f} %)"


def why(entries: Sequence[Entry]) -> list[str]:
    """Two lines about the best plan against the nearest other count of kernels: what it saves, what it costs."""
    best = next((e for e in entries if e.verdict == "best"), None)
    others = [e for e in entries if best and e is not best and e.time and e.summary and e.kernels != best.kernels]
    if best is None or best.time is None or best.summary is None or not others:
        return []
    other = min(others, key=lambda e: (e.predicted_us or 0.0, e.kernels))
    assert other.time is not None and other.summary is not None
    fewer = other.kernels - best.kernels
    moved = sum(k.gm_bytes for k in other.time.kernels) - sum(k.gm_bytes for k in best.time.kernels)
    apart = (other.predicted_us or 0.0) - (best.predicted_us or 0.0)
    launches = f"{abs(fewer)} launch{'es' if abs(fewer) > 1 else ''} {'fewer' if fewer > 0 else 'more'}"
    gain = (
        f"Against {other.plan}: {launches}, {abs(moved) / 2**20:.0f} MB {'less' if moved > 0 else 'more'} through GM, {apart:.0f} us less."
    )
    long = max(best.time.kernels, key=lambda k: k.us)
    stall, share = max(long.waits.items(), key=lambda kv: kv[1], default=("nothing", 0.0))
    part = 100 * long.us / best.time.kernels_us
    cost = f"What is left: {long.name} takes {part:.0f} %, {long.bottleneck}; waits: {stall} {100 * share:.0f} %."
    if apart <= best.interval * (best.predicted_us or 0.0):
        gain += " That is inside of the interval: a tie."
    return [gain, cost]
