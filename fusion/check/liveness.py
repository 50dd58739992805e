"""How many bytes of an on-chip memory are in use at once, at least."""

from __future__ import annotations

from fusion.check.crossings import bytes_of
from fusion.check.facts import Facts, Local, Memory, Touch


def peak(facts: Facts, memory: Memory, planned: bool) -> tuple[int, tuple[Local, ...]]:
    """Bytes and buffers at the fullest moment; without memory planning nothing shares a place, and all buffers count."""
    mine = [buffer for buffer in facts.locals.values() if buffer.memory == memory and buffer.bytes]
    if not planned:
        return sum(bytes_of(facts, b) for b in mine), tuple(mine)
    spans = {b.name: _span(facts, b.name) for b in mine}
    moments = sorted({start for span in spans.values() if span for start in (span[0],)})
    best: tuple[int, tuple[Local, ...]] = (0, ())
    for moment in moments:
        live = tuple(b for b in mine if (span := spans[b.name]) and span[0] <= moment <= span[1])
        best = max(best, (sum(bytes_of(facts, b) for b in live), live), key=lambda found: found[0])
    return best


def _span(facts: Facts, name: str) -> tuple[int, int] | None:
    """From the first statement that uses a buffer to the last; a value that enters a loop from outside lives as long as the loop."""
    uses = [t for t in facts.touches if name in t.reads or name in t.writes]
    if not uses:
        return None
    first, last = uses[0], uses[-1]
    start, end = first.order, last.order
    for loop in last.serial:
        if loop not in first.serial:
            end = max(end, max(t.order for t in facts.touches if loop in t.serial))
    if _carried(uses):
        inner = first.serial[-1]
        inside = [t.order for t in facts.touches if inner in t.serial]
        start, end = min(start, *inside), max(end, *inside)
    return start, end


def _carried(uses: list[Touch]) -> bool:
    """Whether the first use inside of a loop reads what the iteration before has left."""
    return bool(uses[0].serial) and any(name in uses[0].reads for name in uses[0].writes)
