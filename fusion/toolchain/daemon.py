"""Starting, finding and stopping the long-lived worker of a compiler: one per user, home folder and compiler version.

The listening socket is made here and inherited by the worker, so that jobs can be sent while it is still importing the compiler.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from fusion.errors import FusionError
from fusion.toolchain import layout, locks
from fusion.toolchain.discover import Compiler

IDLE_VARIABLE = "FUSION_PLAN_WORKER_IDLE"
IDLE_SECONDS = 900.0
"""A worker without work leaves after this time; FUSION_PLAN_WORKER_IDLE overrides it."""

SHORTEST_IDLE = 5.0
MOST_SLOTS = 4
STOP_SECONDS = 5.0
PING_SECONDS = 1.0

_spawned: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class WorkerState:
    """A running worker: `state` is "starting", "idle" or "busy"; `served` counts the jobs it has taken."""

    pid: int
    kind: str
    version: str
    state: str
    served: int = 0
    seconds_up: float = 0.0


def slots() -> int:
    """Jobs that a worker runs at once: one a core, at most MOST_SLOTS."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    return max(1, min(MOST_SLOTS, usable))


def identity(compiler: Compiler) -> str:
    """Names the worker of a compiler; another version of the compiler or of the worker's code has another worker."""
    digest = hashlib.sha256(repr((compiler.kind, compiler.version, compiler.command)).encode())
    for path in sorted(layout.WORKER.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def connect(compiler: Compiler) -> socket.socket:
    """A connection to the compiler's worker, started if there is none."""
    name = identity(compiler)
    found = _try_connect(name)
    if found is not None:
        return found
    with locks.held(layout.run() / "start.lock"):
        found = _try_connect(name)
        if found is not None:
            return found
        _spawn(compiler, name)
        found = _try_connect(name)
    if found is None:
        raise not_running(compiler)
    return found


def warm(compiler: Compiler) -> None:
    """Start the worker if it is not running, without waiting for it."""
    connect(compiler).close()


REMEDIES = {
    "importable": "run `python -c 'import tilelang'` and mend what it says, or remove that package",
    "native": "run `fusion-plan toolchain remove`, then `fusion-plan toolchain install`",
    "emulated": "run `fusion-plan toolchain remove`, then `fusion-plan toolchain install`",
}


def not_running(compiler: Compiler) -> FusionError:
    """The error for a worker that did not start or left on its own, with the end of its log."""
    log = _log(identity(compiler))
    tail = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:] if log.exists() else []
    return FusionError(
        "the compiler's worker does not start: " + (" / ".join(tail) or "it left without a word"),
        where=str(log),
        remedy=REMEDIES[compiler.kind],
    )


def _try_connect(name: str) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    try:
        with _short_path(name) as path:
            connection.connect(path)
    except OSError:
        connection.close()
        return None
    return connection


@contextlib.contextmanager
def _short_path(name: str) -> Generator[str]:
    """The socket's path by way of an open folder: a socket's own path must not exceed 107 bytes, a home folder may."""
    descriptor = os.open(layout.run(), os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{name}.sock"
    finally:
        os.close(descriptor)


def _log(name: str) -> Path:
    return layout.run() / f"{name}.log"


def _note(name: str) -> Path:
    return layout.run() / f"{name}.json"


def _spawn(compiler: Compiler, name: str) -> None:
    layout.run().mkdir(parents=True, exist_ok=True)
    layout.run().chmod(0o700)
    (layout.run() / f"{name}.sock").unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener, _log(name).open("wb") as log:
        with _short_path(name) as path:
            listener.bind(path)
        listener.listen(64)
        process = subprocess.Popen(
            _command(compiler, name, listener.fileno()),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=dict(compiler.environment),
            cwd="/",
            pass_fds=(listener.fileno(),),
            start_new_session=True,
        )
    _spawned.append(process)
    note = {"pid": process.pid, "kind": compiler.kind, "version": compiler.version}
    _note(name).write_text(json.dumps(note), encoding="utf-8")


def _command(compiler: Compiler, name: str, listener: int) -> list[str]:
    boot = str(layout.WORKER / "boot.py")
    folder = str(layout.run() / f"{name}.jobs")
    fixed = ["--listen-fd", str(listener), "--folder", folder, "--slots", str(slots()), "--idle", str(_idle())]
    return [*compiler.command, boot, "serve", *fixed, *(["--stubs"] if compiler.stubs else [])]


def _idle() -> float:
    try:
        return max(SHORTEST_IDLE, float(os.environ.get(IDLE_VARIABLE, IDLE_SECONDS)))
    except ValueError:
        return IDLE_SECONDS


def states() -> list[WorkerState]:
    """The running workers of this home folder."""
    found = [_state(note) for note in sorted(layout.run().glob("*.json"))]
    return [state for state in found if state is not None]


def _state(note: Path) -> WorkerState | None:
    try:
        known = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not alive(known["pid"]):
        return None
    pong = _ask(note.stem, "ping")
    if pong is None:
        return WorkerState(known["pid"], known["kind"], known["version"], "starting")
    state = "busy" if pong["running"] or pong["queued"] else "idle"
    return WorkerState(known["pid"], known["kind"], known["version"], state, pong["served"], pong["seconds_up"])


def _ask(name: str, operation: str) -> dict[str, int] | None:
    """One short request; None if the worker does not answer within PING_SECONDS."""
    connection = _try_connect(name)
    if connection is None:
        return None
    with connection:
        connection.settimeout(PING_SECONDS)
        try:
            connection.sendall(json.dumps({"op": operation}).encode() + b"\n")
            line = connection.makefile("rb").readline()
            return json.loads(line) if line else None
        except (OSError, ValueError):
            return None


def alive(pid: int) -> bool:
    """Whether the process is there and is a worker; a number reused by another program is not."""
    for process in _spawned:
        process.poll()
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"boot.py\0serve" in command


def stop_all() -> int:
    """Stop every worker of this home folder; returns how many there were."""
    stopped = 0
    for note in sorted(layout.run().glob("*.json")):
        try:
            pid = int(json.loads(note.read_text(encoding="utf-8"))["pid"])
        except (OSError, ValueError, KeyError):
            continue
        if alive(pid):
            stopped += 1
            _stop(note.stem, pid)
        for path in layout.run().glob(f"{note.stem}.*"):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
    return stopped


def _stop(name: str, pid: int) -> None:
    """Ask; after STOP_SECONDS, or if it is still starting, end it."""
    if _ask(name, "stop") is not None and _gone(pid):
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        if _gone(pid):
            return


def kill(compiler: Compiler) -> None:
    """End a worker that has stopped answering."""
    note = _note(identity(compiler))
    with contextlib.suppress(OSError, ValueError, KeyError, ProcessLookupError):
        pid = int(json.loads(note.read_text(encoding="utf-8"))["pid"])
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
            _gone(pid)


def _gone(pid: int) -> bool:
    deadline = time.monotonic() + STOP_SECONDS
    while time.monotonic() < deadline:
        if not alive(pid):
            return True
        time.sleep(0.02)
    return False
