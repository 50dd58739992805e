"""A timeline in the trace event format that Perfetto and chrome://tracing open: a process a kernel, a thread a pipe."""

from __future__ import annotations

import json

from fusion.compare.rows import Entry
from fusion.report.spans import spans
from fusion.timeline.report import KernelTime


def events(kernel: KernelTime, process: int, at_us: float) -> list[dict[str, object]]:
    """Complete events ("X") of a typical block, shifted to the kernel's start, and the names of process and threads ("M")."""
    found: list[dict[str, object]] = [
        {
            "name": "process_name",
            "ph": "M",
            "pid": process,
            "tid": 0,
            "args": {"name": f"{kernel.name}: a typical block of {kernel.blocks}"},
        }
    ]
    lanes: dict[str, int] = {}
    for span in spans(kernel):
        if span.lane not in lanes:
            lanes[span.lane] = 8 * span.stream + span.pipe + 1
            found.append({"name": "thread_name", "ph": "M", "pid": process, "tid": lanes[span.lane], "args": {"name": span.lane}})
        found.append(
            {"name": span.name, "ph": "X", "ts": round(at_us + span.start / 1e3, 4), "dur": round((span.end - span.start) / 1e3, 4),
             "pid": process, "tid": lanes[span.lane], "cat": "instruction", "args": {"line": span.line, "code": span.text}}
        )  # fmt: skip
    return found


def trace_json(entry: Entry) -> str:
    """The kernels of a plan one after the other."""
    found, at = list[dict[str, object]](), 0.0
    for number, kernel in enumerate(entry.time.kernels if entry.time else (), 1):
        found += events(kernel, number, at)
        at += kernel.us
    return json.dumps({"traceEvents": found, "displayTimeUnit": "ns", "otherData": {"plan": entry.plan}})
