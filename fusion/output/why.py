"""Why this plan: two to four lines on where its time goes and what other counts of kernels would cost."""

from __future__ import annotations

from collections.abc import Mapping

from fusion.output.summary import Summary
from fusion.output.table import size


def why(summary: Summary, others: Mapping[int, float | str], file: str = "") -> list[str]:
    """`others` are estimates, or reasons why not, by the count of kernels."""
    lines = [_origin(summary, file), _time(summary)]
    lines += [_other(summary, count, us) for count, us in sorted(others.items())]
    return lines[:4]


def _origin(summary: Summary, file: str) -> str:
    count = len(summary.kernels)
    kept = size(summary.between_bytes)
    if file:
        return f"taken from {file}: {count} kernels that leave {kept} in GM for each other"
    notes = f" ({'; '.join(summary.plan.notes)})" if summary.plan.notes else ""
    return f"the cheapest legal plan with {count} kernel{'s' if count > 1 else ''} by the estimate{notes}; {kept} in GM between kernels"


def _time(summary: Summary) -> str:
    slowest = max(summary.kernels, key=lambda k: k.cost_us)
    share = 100 * slowest.cost_us / summary.total_us
    host = f", the host {summary.host_us:.0f} us" if summary.host_us else ""
    return f"{slowest.kernel.name} takes {share:.0f} % of {summary.total_us:.0f} us, most of it {slowest.bottleneck}{host}"


def _other(summary: Summary, count: int, us: float | str) -> str:
    kernels = f"{count} kernel{'s' if count > 1 else ''}"
    if isinstance(us, str):
        return f"{kernels}: {us}"
    gain = us - summary.total_us
    verb = "merging to" if count < len(summary.kernels) else "splitting into"
    return f"{verb} {kernels} would take {us:.0f} us, {abs(gain):.0f} us {'more' if gain >= 0 else 'less'}"
