"""The one exception that a user's mistake raises; the command line turns it into one or two lines and exit status 2."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from fusion.words import either


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


NEAR = 0.6
"""How like a known name a mistyped one must be (1 is the same) to be taken for it."""
BEHIND = 0.2
"""How much less like than the nearest another name may be to be suggested too."""
MOST_NAMES = 12


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """A remedy line for a mistyped name: the near names; if there is none, all of them, as far as a line holds them.

    `otherwise` is what else may be done: "give a .toml file".
    """
    names = sorted(known)
    close = near(name, names)
    if close:
        return f"did you mean {either(close)}?" + (f" If not, {otherwise}" if otherwise else "")
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    listed = f"known: {', '.join(names[:MOST_NAMES])}{more}" if names else "none is known"
    return f"{listed}; or {otherwise}" if otherwise else listed


def near(name: str, names: Iterable[str]) -> list[str]:
    """At most three names, the nearest first; dashes in front of options and the case of letters do not count."""
    plain = name.lstrip("-").lower()
    likeness = {n: difflib.SequenceMatcher(None, n.lstrip("-").lower(), plain).ratio() for n in names}
    least = max(NEAR, max(likeness.values(), default=0.0) - BEHIND)
    return sorted((n for n in likeness if likeness[n] >= least), key=lambda n: -likeness[n])[:3]
