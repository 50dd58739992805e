"""Locks between fusion-plan processes; the kernel releases them when a process ends, however it ends."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator
from pathlib import Path


def _owner(descriptor: int) -> str:
    os.lseek(descriptor, 0, os.SEEK_SET)
    return os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"


@contextlib.contextmanager
def held(path: Path, waiting: Callable[[str], None] | None = None) -> Generator[None]:
    """Hold the lock file at `path`; if another process has it, call `waiting` with its process id once, then wait for it."""
    import fcntl  # not on every system that the rest of fusion-plan runs on

    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is not None:
                waiting(_owner(descriptor))
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)
