# pyright: basic
"""One forked process per job: a crash or a hang of the compiler takes only its own job along."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

PR_SET_PDEATHSIG = 1
OUTPUT_LIMIT = 20_000
"""Characters of the compiler's own prints that a result carries."""


@dataclass
class Child:
    """A running job: process id, the pipe that closes when it ends, its folder, and when (monotonic seconds) it is to be killed.

    `memory` is how many bytes it may use, 0 for any number.
    """

    pid: int
    done: int
    folder: Path
    deadline: float
    timeout: float
    started: float
    timed_out: bool = False
    memory: int = 0
    overgrown: bool = False

    def resident(self) -> int:
        """Bytes of memory that the job's process uses now."""
        try:
            return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, ValueError, IndexError):
            return 0

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def start(folder: Path, timeout: float, run: Callable[[Path], None], close: Iterable[int], memory: int = 0) -> Child:
    """Fork; the child closes `close`, sends its prints to the folder and runs `run`."""
    folder.mkdir(parents=True)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _in_child(folder, run, [reader, *close])
    os.close(writer)
    now = time.monotonic()
    return Child(pid, reader, folder, now + timeout, timeout, now, memory=memory)


def _in_child(folder: Path, run: Callable[[Path], None], close: Iterable[int]) -> None:
    status = 1
    try:
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(output, 1)
        os.dup2(output, 2)
        for descriptor in close:
            with contextlib.suppress(OSError):
                os.close(descriptor)
        run(folder)
        status = 0
    finally:
        with contextlib.suppress(Exception):
            os.sys.stdout.flush()  # type: ignore[attr-defined]
        os._exit(status)


def finish(child: Child) -> dict:
    """Collect an ended child: its result, or the error that its end amounts to; its folder is gone afterwards."""
    _, status = os.waitpid(child.pid, 0)
    os.close(child.done)
    try:
        result = None if child.overgrown else _read_result(child.folder)
        output = _read(child.folder / "output.txt")
        if result is None:
            result = {"error": _end(child, status, output), "seconds": time.monotonic() - child.started}
        result["log"] = output[-OUTPUT_LIMIT:]
        return result
    finally:
        shutil.rmtree(child.folder, ignore_errors=True)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _read_result(folder: Path) -> dict | None:
    text = _read(folder / "result.json")
    return json.loads(text) if text else None


def _end(child: Child, status: int, output: str) -> dict:
    """The error of a job that ended without a result."""
    step = _read(child.folder / "step")
    place = f" in {step}" if step else ""
    if child.overgrown:
        kind, message = "memory", f"it used more than {child.memory >> 20} MB of memory{place}"
    elif child.timed_out:
        kind, message = "timeout", f"the compiler was still running after {child.timeout:g} s{place}"
    elif os.WIFSIGNALED(status):
        kind, message = "crash", f"the compiler died of {_signal_name(os.WTERMSIG(status))}{place}"
    else:
        kind, message = "crash", f"the compiler's process left with status {os.WEXITSTATUS(status)}{place}"
    return {"kind": kind, "message": message, "pass_name": step, "details": output[-4000:]}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
