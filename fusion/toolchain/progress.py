"""How an installation and a lowering tell what they do; the terminal version is loaded only when it is used."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Generator
from typing import Protocol


class Observer(Protocol):
    """What the installation reports to."""

    def say(self, text: str) -> None:
        """A line for the user."""
        ...

    def step(self, title: str, total: int) -> None:
        """A step begins that handles about `total` bytes (0: unknown)."""
        ...

    def advance(self, done: int) -> None:
        """`done` bytes of the current step are there."""
        ...


class Silent:
    """Reports nothing."""

    def say(self, text: str) -> None: ...

    def step(self, title: str, total: int) -> None: ...

    def advance(self, done: int) -> None: ...


class Lines:
    """One line a step on standard error, for logs and pipes."""

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def step(self, title: str, total: int) -> None:
        self.say(f"  {title} ...")

    def advance(self, done: int) -> None: ...


@contextlib.contextmanager
def terminal() -> Generator[Observer]:
    """A progress bar on standard error when that is a terminal, else lines."""
    if not sys.stderr.isatty():
        yield Lines()
        return
    from fusion.toolchain.bars import Bars

    with Bars() as bars:
        yield bars
