"""The comparison as a table for the terminal, and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from rich.table import Table

from fusion.compare.rows import Entry

CSV_COLUMNS = ("plan", "kernels", "launches", "predicted_us", "measured_us", "handwritten_us", "main_us", "estimated_us", "floor_us",
               "interval", "host_syncs", "workspace_bytes", "between_bytes", "ub_bytes", "l1_bytes", "l0c_bytes", "bottleneck",
               "verdict")  # fmt: skip


def _us(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def _size(nbytes: int | None) -> str:
    if nbytes is None:
        return "-"
    return f"{nbytes / 2**20:.1f} MB" if nbytes >= 1 << 20 else f"{nbytes / 1024:.0f} KB"


def table(entries: Sequence[Entry]) -> Table:
    """One row a plan; columns of published variants only where there are some."""
    published = any(e.measured_us is not None for e in entries)
    made = Table()
    for column in ("plan", "launches", "GM workspace", "between", "host syncs", "UB / L1 / L0C peak"):
        made.add_column(column, justify="left" if column == "plan" else "right")
    for column in ("by hand, us", "measured", "emitted, same part") if published else ("predicted us", "estimate"):
        made.add_column(column, justify="right")
    for column in ("floor", "bottleneck", "verdict"):
        made.add_column(column, justify="right" if column == "floor" else "left")
    for e in entries:
        made.add_row(*_cells(e, published), style="bold" if e.verdict == "best" else None)
    return made


def _cells(e: Entry, published: bool) -> list[str]:
    s = e.summary
    if e.error:
        return [e.plan, "-", "-", "-", "-", "-", "-", "-", *(["-"] if published else []), _us(e.floor_us), "-", f"no plan: {e.error[:80]}"]
    peaks = " / ".join(f"{e.peak(m) / 1024:.0f}" for m in ("ub", "l1", "l0c")) + " KB"
    low_high = f"{_us(e.predicted_us)} ±{100 * e.interval:.0f} %"
    times = [low_high, _us(e.measured_us), _us(e.main_us)] if published else [low_high, _us(e.estimated_us)]
    launches = str(e.program.host.launches if e.program else e.kernels)
    mark = "* " if e.verdict == "best" else ""
    memory = [_size(s.workspace_bytes if s else None), _size(s.between_bytes if s else None)]
    syncs = str(s.host_syncs) if s else "-"
    return [mark + e.plan, launches, *memory, syncs, peaks, *times, _us(e.floor_us), e.time.bottleneck if e.time else "-", e.verdict]


def as_csv(entries: Sequence[Entry]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for e in entries:
        row = e.to_json()
        writer.writerow(["" if row[c] is None else row[c] for c in CSV_COLUMNS])
    return out.getvalue()
