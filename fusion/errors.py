"""The one exception that a user's mistake raises; the command line turns it into one or two lines and exit status 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class FusionError(Exception):
    """A mistake in the input: what is wrong (with the value and the limit), where, and what to do about it."""

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        return f"{head}\n  {self.remedy}" if self.remedy else head


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A remedy line for a mistyped name: the closest known names, or all of them if none is close."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    if close:
        return "did you mean " + " or ".join(close) + "?"
    return "known: " + ", ".join(names) if names else "none is known"
