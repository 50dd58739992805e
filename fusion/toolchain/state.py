"""What `fusion-plan toolchain status` shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fusion.errors import FusionError
from fusion.toolchain import cache, commands, daemon, discover, installation, layout


@dataclass(frozen=True)
class Status:
    """The compiler found (None: none) or why there can be none, the bytes installed, running workers and cached results."""

    compiler: discover.Compiler | None
    obstacle: str
    root: Path
    bytes: int
    unfinished: bool
    workers: tuple[daemon.WorkerState, ...]
    cached_results: int


def status() -> Status:
    """The state of the toolchain now; starts and installs nothing."""
    found = discover.find()
    size = commands.size_of(layout.root())
    workers = tuple(daemon.states())
    return Status(found, "" if found else _obstacle(), layout.root(), size, bool(size) and found is None, workers, cache.count())


def _obstacle() -> str:
    try:
        installation.possible_kind()
    except FusionError as error:
        return error.what
    return ""
