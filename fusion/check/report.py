"""What is said about a kernel: findings with a line of the user's file, and a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Verdict = Literal["clean", "race", "deadlock", "wrong", "refused", "error"]
Severity = Literal["error", "warning", "note"]

VERDICTS: tuple[Verdict, ...] = ("clean", "race", "deadlock", "wrong", "refused", "error")
WORST_FIRST: tuple[Verdict, ...] = ("error", "refused", "deadlock", "race", "wrong", "clean")


@dataclass(frozen=True)
class Place:
    """Another line that a finding is about, and what happens there."""

    line: int
    label: str


@dataclass(frozen=True)
class Finding:
    """One mistake. `line` is 1-based, 0 if unknown. `why` says what comes of it. `verdict` is what it makes of the kernel."""

    rule: str
    line: int
    message: str
    remedy: str
    why: str = ""
    verdict: Verdict = "wrong"
    severity: Severity = "error"
    places: tuple[Place, ...] = ()
    fix: str = ""

    def to_json(self) -> dict[str, object]:
        base: dict[str, object] = {"rule": self.rule, "line": self.line, "message": self.message, "remedy": self.remedy}
        places = [{"line": place.line, "label": place.label} for place in self.places]
        return {**base, "severity": self.severity, "why": self.why, "places": places}


@dataclass(frozen=True)
class Hint:
    """Something that would save time: about how many microseconds of the launch."""

    rule: str
    line: int
    message: str
    gain_us: float

    def to_json(self) -> dict[str, object]:
        return {"rule": self.rule, "line": self.line, "message": self.message, "gain_us": round(self.gain_us, 2)}


@dataclass(frozen=True)
class Timing:
    """A launch's predicted time: the busiest pipes with their share of it, and the lines on a block's critical path."""

    us: float
    blocks: int
    bottleneck: str
    busy: tuple[tuple[str, float], ...]
    lines: tuple[tuple[int, float], ...]
    hints: tuple[Hint, ...] = ()

    def to_json(self) -> dict[str, object]:
        lines = [{"line": line, "us": round(us, 2)} for line, us in self.lines]
        busy = {name: round(share, 3) for name, share in self.busy}
        hints = [hint.to_json() for hint in self.hints]
        return {"us": round(self.us, 2), "blocks": self.blocks, "bottleneck": self.bottleneck, "busy": busy, "lines": lines, "hints": hints}


@dataclass(frozen=True)
class Report:
    """One kernel of one file.

    `judged` is False if no verdict on the kernel itself was possible; `notes` say what was run and what was not.
    """

    file: Path
    kernel: str
    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    judged: bool = True
    time: Timing | None = None
    args: str = ""

    def to_json(self) -> dict[str, object]:
        found = [finding.to_json() for finding in self.findings]
        base: dict[str, object] = {"file": str(self.file), "kernel": self.kernel, "verdict": self.verdict, "findings": found}
        return {**base, "notes": list(self.notes), "time": self.time.to_json() if self.time else None}

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "error")


@dataclass(frozen=True)
class FileReport:
    """All kernels of one file, and its text for the excerpts."""

    path: Path
    text: str
    kernels: tuple[Report, ...] = field(default=())

    def verdict(self) -> Verdict:
        return worst(report.verdict for report in self.kernels)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    ranks = [WORST_FIRST.index(verdict) for verdict in verdicts]
    return WORST_FIRST[min(ranks, default=-1)]


def exit_code(reports: Iterable[Report]) -> int:
    """0 all clean, 1 there are findings, 2 something could not be judged."""
    found = list(reports)
    if any(not report.judged for report in found):
        return 2
    return 1 if any(report.verdict != "clean" for report in found) else 0


def unjudged(file: Path, kernel: str, rule: str, line: int, message: str, remedy: str) -> Report:
    """A report for something that could not be looked at."""
    return Report(file, kernel, "error", (Finding(rule, line, message, remedy, verdict="error"),), judged=False)
