"""The timeline of a checked kernel: where its microseconds go, by TileLang line, and what would save some of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fusion import device
from fusion.check.facts import Facts
from fusion.check.inputs import Argument, Sizes
from fusion.check.places import Places
from fusion.check.report import Hint, Timing
from fusion.device import Device
from fusion.errors import FusionError
from fusion.simulator import Buffer
from fusion.timeline.launch import time_launch
from fusion.timeline.record import outline
from fusion.timeline.report import KernelTime, critical_path, kernel_time

WORTH_US = 0.5
WORTH_SHARE = 0.05
"""Hints that save less are not given."""
MOST_LINES = 5
LINE = re.compile(r"line (\d+)")


@dataclass(frozen=True)
class _Timed:
    """One kernel with its times; `facts` and `places` tie them to the source."""

    facts: Facts
    places: Places
    time: KernelTime
    device: Device

    def line(self, generated: int) -> int:
        return self.places.line(generated)


def timing(facts: Facts, code: str, buffers: Sequence[Buffer], sizes: Sizes) -> Timing:
    """The timeline of one launch. Raises FusionError if it cannot be recorded."""
    places, described = Places(facts, code), device.load()
    recorded = outline(code, facts.program.name, buffers, dict(sizes))
    launched = time_launch(recorded, described)
    lines = {text: number for number, text in reversed(list(enumerate(code.splitlines(), 1)))}
    time = kernel_time(facts.program.name, launched, described, lambda text: f"line {places.line(lines.get(text, 0))}")
    timed = _Timed(facts, places, time, described)
    hints = sorted((hint for rule in HINTS for hint in rule(timed)), key=lambda hint: -hint.gain_us)
    return Timing(time.us, time.blocks, time.bottleneck, _busy(time), _lines(time), tuple(hints))


def _busy(time: KernelTime) -> tuple[tuple[str, float], ...]:
    return tuple(sorted(time.busy.items(), key=lambda item: -item[1])[:6])


def _lines(time: KernelTime) -> tuple[tuple[int, float], ...]:
    """The lines on the critical path of a block, with their microseconds."""
    found = [(int(match[1]), us) for name, us in time.critical_us.items() if (match := LINE.fullmatch(name)) and int(match[1])]
    return tuple(found[:MOST_LINES])


def _worth(timed: _Timed, gain: float) -> bool:
    return gain >= WORTH_US and gain >= WORTH_SHARE * timed.time.us


def _blamed(timed: _Timed, kinds: re.Pattern[str]) -> tuple[int, float]:
    """(line, microseconds of the launch) that statements of a kind add to the critical path."""
    launched, found = timed.time.launched, dict[int, float]()
    typical = max((kind for kind in launched.kinds if kind.schedule), key=lambda kind: kind.kind.count)
    total = 0.0
    for at, ns in critical_path(typical):
        number = int(typical.kind.records["line"][at])
        total += ns
        if kinds.search(timed.places.lines[number - 1] if 0 < number <= len(timed.places.lines) else ""):
            found[timed.line(number)] = found.get(timed.line(number), 0.0) + ns
    share = sum(found.values()) / total if total else 0.0
    return max(found, key=lambda line: found[line], default=0), share * timed.time.us


def scalar_rows(timed: _Timed) -> Iterator[Hint]:
    """Row broadcasts lower to a scalar read, a barrier and a short vector operation for each row."""
    line, us = _blamed(timed, re.compile(r"GetValue|SetValue"))
    if _worth(timed, us):
        text = "row by row through the scalar unit; T.tile.broadcast and one operation on the whole tile do the same"
        yield Hint("scalar-rows", line, text, us)


def barriers_in_loops(timed: _Timed) -> Iterator[Hint]:
    """PIPE_ALL lets every pipe run dry."""
    line, us = _blamed(timed, re.compile(r"PIPE_ALL"))
    if _worth(timed, us):
        yield Hint("pipe-all", line, "waits for all pipes; flags between the two pipes that are concerned let the others go on", us)


def launches_per_task(timed: _Timed) -> Iterator[Hint]:
    """A block per task costs the start of a block for each."""
    cores = timed.device.cube_cores
    gain = timed.time.start_share * timed.time.us * (1 - cores / timed.time.blocks) if timed.time.blocks > cores else 0.0
    if _worth(timed, gain):
        text = f"{timed.time.blocks} blocks on {cores} cores; one block a core that loops over its tasks starts {cores} times"
        yield Hint("launches-per-task", 0, text, gain)


def no_overlap(timed: _Timed) -> Iterator[Hint]:
    """Cube and Vector that only take turns."""
    busy = timed.time.busy
    sides = [max((share for name, share in busy.items() if name.startswith(unit)), default=0.0) for unit in ("AIC", "AIV")]
    waiting = max((share for name, share in timed.time.waits.items() if name.endswith("cross-core flag")), default=0.0)
    gain = min(min(sides), waiting) * timed.time.us
    if len(timed.facts.units()) == 2 and _worth(timed, gain):
        yield Hint("no-overlap", 0, "Cube and Vector take turns; more slots in the workspaces let one work on the next tile", gain)


HINTS = (scalar_rows, barriers_in_loops, launches_per_task, no_overlap)


def buffers_for_timing(arguments: Sequence[Argument], buffers: Sequence[Buffer]) -> list[Buffer]:
    """Only contents that steer the kernel are needed: integers."""
    whole = {a.name for a in arguments if "int" in a.dtype}
    return [b if b.name in whole else Buffer(b.name, b.dtype, b.shape, role="out") for b in buffers]


def attempt(facts: Facts, code: str, buffers: Sequence[Buffer], sizes: Sizes) -> Timing | str:
    """The timeline, or why there is none."""
    try:
        return timing(facts, code, buffers, sizes)
    except FusionError as problem:
        return f"no timeline: {problem.what}"
