"""What goes from one unit to the other in a kernel: explicit workspaces, and copies that the compiler leads through one of its own."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fusion.check import program as p
from fusion.check.facts import COPIES, GEMMS, Facts, Local, Touch, number
from fusion.check.program import Unit
from fusion.rules import names
from fusion.rules.handoffs import Direction, Hand

UNITS: tuple[tuple[Unit, Unit], ...] = (("cube", "vector"), ("vector", "cube"))


@dataclass(frozen=True)
class Crossing:
    """A GM buffer that one unit writes and the other reads."""

    name: str
    writer: Unit
    reader: Unit
    writes: tuple[Touch, ...]
    reads: tuple[Touch, ...]

    @property
    def direction(self) -> Direction:
        return "cube->vector" if self.writer == "cube" else "vector->cube"


@dataclass(frozen=True)
class Handover:
    """One write and the read that belongs to it."""

    title: str
    direction: Direction
    written: Touch
    read: Touch | None
    name: str = ""

    @property
    def line(self) -> int:
        return self.written.line

    @property
    def read_line(self) -> int:
        return self.read.line if self.read else self.written.line

    @property
    def writer_conditions(self) -> tuple[str, ...]:
        return self.written.conditions

    @property
    def reader_conditions(self) -> tuple[str, ...]:
        return self.read.conditions if self.read else self.written.conditions


def explicit(facts: Facts) -> tuple[Crossing, ...]:
    """The kernel's own workspaces, in the order of its parameters."""
    found: list[Crossing] = []
    for buffer in facts.program.buffers:
        for writer, reader in UNITS:
            writes, reads = facts.gm_writes(buffer.name, writer), facts.gm_reads(buffer.name, reader)
            if writes and reads:
                found.append(Crossing(buffer.name, writer, reader, writes, reads))
    return tuple(found)


def all_handoffs(facts: Facts) -> tuple[Handover, ...]:
    """Every handoff that gets a flag, in program order."""
    found: list[Handover] = []
    for crossing in explicit(facts):
        if names.is_ordered(crossing.name):
            pairs = zip(crossing.writes, crossing.reads, strict=False)
            found += [Handover(crossing.name, crossing.direction, w, r, crossing.name) for w, r in pairs]
    for relay in facts.relays:
        found.append(Handover(f"{relay.source} -> {relay.target}", relay.direction, relay.copy, relay.consumer))
    return tuple(sorted(found, key=lambda h: h.written.order))


def _reaching(facts: Facts, touches: Sequence[Touch], reach: dict[str, frozenset[str]]) -> Iterator[tuple[int, frozenset[str]]]:
    """For each statement, the handoffs that what it reads was computed from, followed through the buffers in program order."""
    relayed = {relay.copy.order: relay for relay in facts.relays}
    ordered = {crossing.name for crossing in explicit(facts)}
    for touch in touches:
        sources = frozenset[str]().union(*(reach.get(name, frozenset()) for name in touch.reads))
        yield touch.order, sources
        arriving = {f"{n}@{touch.order}" for n in touch.reads if n in ordered}
        if touch.order in relayed:
            arriving = {f"{relayed[touch.order].source} -> {relayed[touch.order].target}@{touch.order}"}
        for name in touch.writes:
            kept = frozenset[str]() if touch.op in COPIES else reach.get(name, frozenset())
            if name not in ordered:
                reach[name] = kept | (frozenset(arriving) if touch.op in COPIES and arriving else sources)


def hands(facts: Facts) -> tuple[tuple[Handover, Hand], ...]:
    """The handoffs in the form that the shared rules take; a second way through the program is the next iteration of its loops."""
    reach: dict[str, frozenset[str]] = {}
    once = dict(_reaching(facts, facts.touches, reach))
    again = {**once, **dict(_reaching(facts, [t for t in facts.touches if t.serial], reach))}
    return tuple((h, _hand(facts, h, once, again)) for h in all_handoffs(facts))


def _key(handover: Handover) -> str:
    """How the dataflow names it: by the place at which it arrives."""
    at = handover.read.order if handover.name and handover.read else handover.written.order
    return f"{handover.title}@{at}"


def _hand(facts: Facts, handover: Handover, once: dict[int, frozenset[str]], again: dict[int, frozenset[str]]) -> Hand:
    written, read = handover.written, handover.read
    loops = tuple(loop.key for loop in written.serial if read is None or loop in read.serial)
    at, made = read.order if read else written.order, _maker(facts, written)
    sources, carried = once[written.order], again[written.order]
    reused = 1 if repeats(handover) else 0
    return Hand(_key(handover), handover.direction, loops, made, at, sources, reused, carried=carried)


def _maker(facts: Facts, written: Touch) -> int:
    """Where the value is computed: the writer waits there, not only where it stores."""
    makers = [
        t.order for t in facts.touches if t.order < written.order and written.reads and written.reads[0] in t.writes and t.op in GEMMS
    ]
    return makers[-1] if makers and written.unit == "cube" else written.order


def slots(handover: Handover) -> int:
    """0 if the place in the workspace goes with a loop around it, n for a place modulo n, else 1."""
    starts = handover.written.indices.get(handover.name, ())
    counters = {loop.var for loop in handover.written.serial if loop.var}
    for start in starts:
        if p.names_in(start) & counters:
            modulo = [part for part in p.walk(start) if isinstance(part, p.Binary) and part.op in ("mod", "%")]
            return (number(modulo[0].right) or 0) if modulo else 0
    if not handover.name:
        stages = [loop.stages for loop in handover.written.serial if loop.stages > 1]
        return stages[-1] if stages else 1
    return 1


def repeats(handover: Handover) -> bool:
    """Whether a loop around it comes back to a slot that it has used."""
    count = slots(handover)
    return count > 0 and any(loop.trips is None or loop.trips > count for loop in handover.written.serial)


def flag_id(touch: Touch) -> int | None:
    """The id of a hand-written cross-core flag."""
    if touch.call is None:
        return None
    return number(touch.call.args[1 if touch.op == "ascend_set_cross_flag" else 0])


def gemm_sizes(touch: Touch) -> tuple[int, int, int] | None:
    """(M, N, K) of a gemm_v0."""
    head = touch.call.args[0] if touch.call else None
    found = re.match(r"gemm_v0<[\w ]+, [\w ]+, (\d+), (\d+), (\d+),", head.value) if isinstance(head, p.Text) else None
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def bytes_of(facts: Facts, buffer: Local) -> int:
    """What a buffer takes on one core: without `vid` and with two threads, the compiler gives each Vector core half of the rows."""
    halved = buffer.memory == "UB" and not facts.program.vid and facts.program.threads == 2
    return buffer.bytes // 2 if halved else buffer.bytes
