"""The timeline of a typical block as spans: what ran where, from when to when."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fusion.simulator.trace import PIPES, op_names
from fusion.timeline.price import RUN, SCALAR
from fusion.timeline.report import STREAMS, KernelTime

LONGEST = 6000  # spans of one kernel


@dataclass(frozen=True)
class Span:
    """An instruction on a pipe, in ns from the start of the block."""

    stream: int
    pipe: int
    name: str
    start: float
    end: float
    line: int
    text: str

    @property
    def lane(self) -> str:
        return f"{STREAMS[self.stream]} {PIPES[self.pipe]}"


def spans(kernel: KernelTime, limit: int = LONGEST) -> Iterator[Span]:
    """Spans of the most frequent kind of block, in order of their start; the first `limit` of them."""
    kind = max((k for k in kernel.launched.kinds if k.schedule), key=lambda k: k.kind.count)
    assert kind.schedule is not None
    records, names, source = kind.kind.records, op_names(), kernel.launched.outline.source
    start, end = kind.schedule.start, kind.schedule.end - kind.latency
    work = [i for i in range(len(records)) if records["kind"][i] in (RUN, SCALAR) and start[i] >= 0]
    for i in sorted(work, key=lambda i: (start[i], i))[:limit]:
        line = int(records["line"][i])
        text = source[line - 1].strip() if 0 < line <= len(source) else ""
        pipe = 0 if records["kind"][i] == SCALAR else int(records["pipe"][i])
        yield Span(int(records["stream"][i]), pipe, names[int(records["op"][i])], float(start[i]), float(max(start[i], end[i])), line, text)
