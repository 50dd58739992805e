"""From a line of generated Ascend C back to the TileLang statement that it comes from, by operation and buffer names."""

from __future__ import annotations

import re
from functools import cached_property

from fusion.check import crossings
from fusion.check.facts import COPIES, GEMMS, Facts, Touch

WORD = re.compile(r"[A-Za-z_]\w*")
FLAG = re.compile(r"CrossCore(Set|Wait)Flag(?:<[^>]*>)?\((\d+)")
FUNCTION = re.compile(r"(\w+)(?:<[^;]*?>)?\(")


class Places:
    """Looks up lines of one kernel's generated code."""

    def __init__(self, facts: Facts, generated: str) -> None:
        self.facts, self.lines = facts, generated.splitlines()
        self.known = {*facts.locals, *(buffer.name for buffer in facts.program.buffers)}

    def line(self, generated_line: int) -> int:
        """The TileLang line of a generated line, 0 if there is none to be found."""
        if not 0 < generated_line <= len(self.lines):
            return 0
        text = self.lines[generated_line - 1]
        flag = FLAG.search(text)
        if flag:
            return self._flag(flag[1], int(flag[2]))
        found = self._candidates(text)
        if not found:
            return 0
        twins = self._twins[self._signature(text)]
        position = twins.index(generated_line) if generated_line in twins else 0
        return found[min(position, len(found) - 1)].line if len(twins) >= len(found) else found[0].line

    def _flag(self, kind: str, number: int) -> int:
        """The hand-written flag of that kind and id; those of the compiler are handed out in program order."""
        op = f"ascend_{kind.lower()}_cross_flag"
        written = [touch for touch in self.facts.manual() if touch.op == op and crossings.flag_id(touch) == number]
        if written:
            return written[0].line
        found = crossings.all_handoffs(self.facts)
        if number >= len(found):
            return 0
        return found[number].line if kind == "Set" else found[number].read_line

    def _names(self, text: str) -> frozenset[str]:
        return frozenset(word for word in WORD.findall(text) if word in self.known)

    def _signature(self, text: str) -> tuple[str, frozenset[str]]:
        function = FUNCTION.search(text)
        return function[1] if function else "", self._names(text)

    @cached_property
    def _twins(self) -> dict[tuple[str, frozenset[str]], list[int]]:
        """Generated lines that call the same function on the same buffers."""
        found: dict[tuple[str, frozenset[str]], list[int]] = {}
        for number, text in enumerate(self.lines, 1):
            found.setdefault(self._signature(text), []).append(number)
        return found

    def _candidates(self, text: str) -> list[Touch]:
        names = self._names(text)
        scored = [(self._score(touch, names, text), touch) for touch in self.facts.touches]
        best = max((score for score, _ in scored), default=0)
        return [touch for score, touch in scored if score == best] if best > 0 else []

    def _score(self, touch: Touch, names: frozenset[str], text: str) -> int:
        """Shared buffers count most, then the kind of operation, then buffers that only one side has."""
        own = frozenset((*touch.reads, *touch.writes))
        shared = len(names & own)
        return 10 * shared + 5 * (_kind(touch) in text.lower()) - len(own ^ names) if shared else 0


def _kind(touch: Touch) -> str:
    if touch.op in COPIES:
        return "copy"
    if touch.op in GEMMS:
        return "gemm"
    return "value(" if touch.store else touch.op.removeprefix("ascend_").split("_")[0]
