"""Why this plan: two to four lines on where its time goes and what other counts of kernels would cost."""

from __future__ import annotations

from collections.abc import Mapping

from fusion import words
from fusion.output.summary import Summary
from fusion.output.table import size


def why(summary: Summary, others: Mapping[int, float | str], before_us: float, file: str = "") -> list[str]:
    """`others` are estimates after the passes, or reasons why not, by the count of kernels; `before_us` that of this plan before them."""
    lines = [_origin(summary, file), _time(summary, before_us)]
    return lines + [_other(len(summary.kernels), summary.total_us, count, us) for count, us in sorted(others.items())]


def _origin(summary: Summary, file: str) -> str:
    count = len(summary.kernels)
    kernels = words.count(count, "kernel")
    kept = size(summary.between_bytes)
    if file:
        return f"taken from {file}: {kernels} that leave {kept} in GM for each other"
    notes = f" ({'; '.join(summary.plan.notes)})" if summary.plan.notes else ""
    return f"the cheapest legal plan with {kernels} by the estimate{notes}; {kept} in GM between kernels"


def _time(summary: Summary, before_us: float) -> str:
    slowest = max(summary.kernels, key=lambda k: k.cost_us)
    share = 100 * slowest.cost_us / summary.total_us
    host = f", the host {summary.host_us:.0f} us" if summary.host_us else ""
    passes = f"; {before_us:.0f} us before the passes" if abs(summary.total_us - before_us) > 0.01 * before_us else ""
    return f"{slowest.kernel.name} takes {share:.0f} % of {summary.total_us:.0f} us, most of it {slowest.bottleneck}{host}{passes}"


def _other(mine: int, my_us: float, count: int, us: float | str) -> str:
    kernels = words.count(count, "kernel")
    if isinstance(us, str):
        return f"{kernels}: {us}"
    verb = "merging to" if count < mine else "splitting into"
    return f"{verb} {kernels} would take {us:.0f} us, {abs(us - my_us):.0f} us {'more' if us >= my_us else 'less'}"
