"""Running other programs during installation: their output is kept for the error message, their progress seen on disk."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from fusion.errors import FusionError

POLL_SECONDS = 0.2
TAIL_LINES = 6
PR_SET_PDEATHSIG = 1


def size_of(folder: Path) -> int:
    """Bytes of all files below a folder that other processes may be changing."""
    total = 0
    for base, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(base, name)).st_size
            except OSError:
                continue
    return total


def run(
    command: Sequence[str],
    *,
    what: str,
    remedy: str,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    tick: Callable[[], None] | None = None,
) -> str:
    """Run a program to its end, calling `tick` meanwhile, and return what it printed; raises FusionError(what) if it fails."""
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=folder,
                preexec_fn=_die_with_parent,
            )
        except OSError as error:
            raise FusionError(f"{what}: cannot start {command[0]}: {error.strerror}", remedy=remedy) from None
        try:
            status = _wait(process, tick)
        except BaseException:
            process.terminate()
            process.wait()
            raise
        output.seek(0)
        text = output.read().decode(errors="replace")
    if status != 0:
        raise FusionError(f"{what}: {_tail(text)}", remedy=remedy)
    return text


def _die_with_parent() -> None:
    """A killed installation must not leave an apt-get behind that works on in the same folder."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


def _wait(process: subprocess.Popen[bytes], tick: Callable[[], None] | None) -> int:
    while True:
        try:
            return process.wait(POLL_SECONDS)
        except subprocess.TimeoutExpired:
            if tick is not None:
                tick()


def _tail(text: str) -> str:
    """The last lines that a user can act on: errors if there are any."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith(("e:", "error", "w: failed", "err:"))]
    return " / ".join((errors or lines)[-TAIL_LINES:]) or "no output"
