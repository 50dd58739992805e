"""What a simulated run found: frozen records that print as text and round-trip through JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Literal, cast

from fusion.errors import FusionError

Kind = Literal["race", "deadlock", "flag", "uninit", "bounds", "overlap", "align", "same-pipe", "duplicate", "crash"]
Severity = Literal["error", "warning", "info"]
Verdict = Literal["clean", "race", "deadlock", "wrong", "error"]


@dataclass(frozen=True)
class Place:
    """A statement of the generated code: line, text, the instruction and unit that executed it, and the loop counters."""

    line: int
    op: str = ""
    unit: str = ""
    loops: str = ""
    text: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (f"line {self.line}", self.unit, f"[{self.loops}]" if self.loops else "", self.text) if part)


@dataclass(frozen=True)
class Finding:
    """One class of mistake at one place: `first` happened earlier, `second` is the statement that showed it."""

    rule: str
    kind: Kind
    severity: Severity
    kernel: str
    memory: str
    buffer: str
    message: str
    block: int = 0
    other_block: int = -1
    lo: int = 0
    hi: int = 0
    count: int = 1
    first: Place | None = None
    second: Place | None = None

    def __str__(self) -> str:
        head = f"{self.severity} {self.rule}: {self.kernel}: {self.memory} {self.buffer}".rstrip() + f": {self.message}"
        lines = [f"  {label} {place}" for label, place in (("first ", self.first), ("second", self.second)) if place]
        return "\n".join([f"{head} (block {self.block}, {self.count}x)", *lines])

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    @staticmethod
    def from_json(data: Mapping[str, object]) -> Finding:
        fields = dict(data)
        for key in ("first", "second"):
            place = cast("dict[str, object] | None", fields.get(key))
            fields[key] = Place(**place) if place else None  # pyright: ignore[reportArgumentType]
        try:
            return Finding(**fields)  # pyright: ignore[reportArgumentType]
        except TypeError as error:
            raise FusionError(f"not a finding: {error}", where="Finding.from_json") from error

    def with_text(self, lines: list[str]) -> Finding:
        """The same finding with the source text of its two lines filled in."""

        def fill(place: Place | None) -> Place | None:
            return replace(place, text=lines[place.line - 1].strip()) if place and 0 < place.line <= len(lines) else place

        return replace(self, first=fill(self.first), second=fill(self.second))


def verdict(findings: Iterable[Finding], numbers_pass: bool | None = None) -> Verdict:
    """One word for a run: what hangs is a deadlock, what races is a race, then wrong numbers, then any other error.

    `numbers_pass` is None when there was nothing to compare with. Warnings and infos do not count.
    """
    kinds = {finding.kind for finding in findings if finding.severity == "error"}
    if "crash" in kinds:
        return "error"
    if "deadlock" in kinds:
        return "deadlock"
    if "race" in kinds:
        return "race"
    if numbers_pass is False:
        return "wrong"
    return "error" if kinds else "clean"
