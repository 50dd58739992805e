"""The synchronizations of generated code, by line: what a mutation test removes one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal

SET = re.compile(r"AscendC::SetFlag<AscendC::HardEvent::(\w+)>\((\w+)\)")
WAIT = re.compile(r"AscendC::WaitFlag<AscendC::HardEvent::(\w+)>\((\w+)\)")
BARRIER = re.compile(r"AscendC::PipeBarrier<PIPE_(\w+)>\(\)")
CROSS_SET = re.compile(r"AscendC::CrossCoreSetFlag<\w+,\s*PIPE_(\w+)>\((\w+)\)")
CROSS_WAIT = re.compile(r"AscendC::CrossCoreWaitFlag(?:<[^>]*>)?\((\w+)\)")


@dataclass(frozen=True)
class Sync:
    """One removable synchronization: a barrier, or a set with its wait. `lines` go to run_kernel(mutate=...)."""

    kind: Literal["flag", "barrier", "cross"]
    name: str
    lines: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.kind} {self.name} at line " + ", ".join(map(str, self.lines))


def _pairs(kind: Literal["flag", "cross"], sets: dict[str, list[int]], waits: dict[str, list[int]]) -> Iterator[Sync]:
    for name in sorted({*sets, *waits}):
        for one, other in zip_longest(sets.get(name, []), waits.get(name, [])):
            yield Sync(kind, name, tuple(line for line in (one, other) if line is not None))


def synchronizations(ascendc: str) -> tuple[Sync, ...]:
    """All barriers, flag pairs and cross-core pairs that the kernel itself writes, in order of their first line.

    Sets and waits of one flag are paired in textual order, which is how the compiler emits them.
    """
    flag_sets: dict[str, list[int]] = {}
    flag_waits: dict[str, list[int]] = {}
    cross_sets: dict[str, list[int]] = {}
    cross_waits: dict[str, list[int]] = {}
    found: list[Sync] = []
    for number, line in enumerate(ascendc.splitlines(), 1):
        if match := SET.search(line):
            flag_sets.setdefault(f"{match[1]}({match[2]})", []).append(number)
        elif match := WAIT.search(line):
            flag_waits.setdefault(f"{match[1]}({match[2]})", []).append(number)
        elif match := BARRIER.search(line):
            found.append(Sync("barrier", match[1], (number,)))
        elif match := CROSS_SET.search(line):
            cross_sets.setdefault(match[2], []).append(number)
        elif match := CROSS_WAIT.search(line):
            cross_waits.setdefault(match[1], []).append(number)
    found += [*_pairs("flag", flag_sets, flag_waits), *_pairs("cross", cross_sets, cross_waits)]
    return tuple(sorted(found, key=lambda sync: (sync.lines, sync.kind, sync.name)))


def cross_set_places(ascendc: str, flag: int) -> list[tuple[int, str]]:
    """Where a cross-core flag is set: line and the innermost `if` around it, for the text of a deadlock."""
    places: list[tuple[int, str]] = []
    conditions: list[tuple[int, str]] = []
    for number, line in enumerate(ascendc.splitlines(), 1):
        indent = len(line) - len(line.lstrip())
        while conditions and line.strip() and indent <= conditions[-1][0]:
            conditions.pop()
        if line.strip().startswith("if (") and line.rstrip().endswith("{"):
            conditions.append((indent, line.strip().removesuffix("{").strip()))
        match = CROSS_SET.search(line)
        if match and match[2] == str(flag):
            places.append((number, conditions[-1][1] if conditions else ""))
    return places
