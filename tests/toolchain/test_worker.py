"""The long-lived worker: shared, replaced when lost, stopped when told, and the cache in front of it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fusion.toolchain import KernelSource, cache, daemon, discover, find, layout, lower, status, stop, warm
from fusion.toolchain.discover import Compiler
from tests.toolchain.samples import kernel, kernel_text

pytestmark = pytest.mark.usefixtures("real")

KILL_WORKER = "import os, signal, time\nos.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(30)\n"


def fresh(name: str) -> KernelSource:
    """A kernel that is in no cache: its text is its own."""
    return KernelSource(name, f"# {name}\n" + kernel_text("unnamed_handoff"))


def until(holds: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.05)
    return False


def test_a_second_lowering_comes_from_the_cache_without_a_worker() -> None:
    (first,) = lower([fresh("cached")])
    stop()
    (second,) = lower([fresh("cached")])
    assert (first.cached, second.cached) == (False, True)
    assert replace(second, cached=False) == first
    assert status().workers == ()


def test_progress_tells_what_is_lowered_and_how_far_it_is() -> None:
    told: list[tuple[str, int, int]] = []
    lower([fresh("told"), fresh("told too")], jobs=1, progress=lambda text, done, total: told.append((text, done, total)))
    assert told == [
        ("starting the compiler", 0, 2),
        ("lowering told (ascendc)", 0, 2),
        ("lowered told (ascendc)", 1, 2),
        ("lowering told too (ascendc)", 1, 2),
        ("lowered told too (ascendc)", 2, 2),
    ]


def test_one_worker_serves_many_calls_and_processes() -> None:
    lower([fresh("one")])
    (worker,) = status().workers
    assert worker.state == "idle"
    script = "from fusion import toolchain; toolchain.warm(); print(toolchain.status().workers[0].pid)"
    other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert int(other.stdout) == worker.pid
    assert status().workers[0].served == worker.served


def test_processes_that_start_together_share_one_worker() -> None:
    stop()
    script = "from fusion import toolchain; toolchain.warm()"
    starting = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(3)]
    assert [process.wait() for process in starting] == [0, 0, 0]
    assert len(status().workers) == 1
    assert list(layout.run().glob("*.sock")) == [layout.run() / f"{daemon.identity(installed())}.sock"]


def installed() -> Compiler:
    found = find()
    assert found is not None
    return found


def test_a_killed_worker_and_its_stale_socket_are_replaced() -> None:
    warm()
    lower([fresh("before the kill")])
    (worker,) = status().workers
    os.kill(worker.pid, signal.SIGKILL)
    assert until(lambda: not daemon.alive(worker.pid), 60)
    assert list(layout.run().glob("*.sock"))
    (after,) = lower([fresh("after the kill")])
    assert after.error is None
    assert status().workers[0].pid != worker.pid


def test_a_connection_to_a_worker_that_is_just_ending_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process closes its sockets a moment after it counts as gone: connecting still succeeds, then the line is dead."""
    connect, ending = daemon.connect, [True]

    def first_dead(compiler: Compiler) -> socket.socket:
        if not ending:
            return connect(compiler)
        ending.clear()
        ours, theirs = socket.socketpair()
        theirs.close()
        return ours

    monkeypatch.setattr(daemon, "connect", first_dead)
    (lowered,) = lower([fresh("after a dead line")])
    assert (lowered.error, ending) == (None, [])


def test_a_kernel_that_takes_the_worker_along_fails_alone() -> None:
    killer = KernelSource("killer", KILL_WORKER + kernel_text("unnamed_handoff"))
    killed, fine = lower([killer, fresh("bystander")])
    assert killed.error is not None
    assert killed.error.message == "the compiler's worker ended twice while it had this kernel"
    assert fine.error is None


def test_stop_ends_the_worker_and_leaves_nothing_behind() -> None:
    lower([fresh("last")])
    (worker,) = status().workers
    assert stop() == 1
    assert not daemon.alive(worker.pid)
    assert sorted(path.name for path in layout.run().iterdir()) == ["start.lock"]
    assert stop() == 0


def test_a_worker_leaves_when_it_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    stop()
    monkeypatch.setenv("FUSION_PLAN_WORKER_IDLE", "1")
    monkeypatch.setattr(daemon, "SHORTEST_IDLE", 1.0)
    lower([fresh("idle")])
    (worker,) = status().workers
    assert until(lambda: not daemon.alive(worker.pid), 60)
    assert status().workers == ()


def test_a_client_that_leaves_takes_its_job_along() -> None:
    script = "from fusion.toolchain import KernelSource, lower; lower([KernelSource('endless', 'while True: pass')])"
    client = subprocess.Popen([sys.executable, "-c", script])
    assert until(lambda: any(worker.state == "busy" for worker in status().workers), 120)
    client.kill()
    client.wait()
    assert until(lambda: [worker.state for worker in status().workers] == ["idle"], 60)


def test_a_worker_that_cannot_start_is_an_error_with_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = replace(installed(), command=("/bin/sh", "-c", "echo no such library >&2; exit 3"))
    monkeypatch.setattr(discover, "find", lambda: broken)
    (lowered,) = lower([fresh("never")])
    assert lowered.error is not None
    assert (lowered.error.kind, "no such library" in lowered.error.message) == ("unavailable", True)
    assert cache.get(cache.key({"name": "never"}, "0")) is None


def test_another_compiler_version_has_another_worker() -> None:
    compiler = installed()
    assert daemon.identity(compiler) == daemon.identity(replace(compiler))
    assert daemon.identity(compiler) != daemon.identity(replace(compiler, version="9.9"))


def test_a_process_number_in_an_old_note_is_not_mistaken_for_a_worker() -> None:
    stop()
    note = layout.run() / "0123.json"
    note.write_text(json.dumps({"pid": os.getpid(), "kind": "emulated", "version": "0"}), encoding="utf-8")
    assert status().workers == ()
    assert stop() == 0
    assert not note.exists()


def test_a_long_home_folder_does_not_break_the_socket(real: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop()
    long = real / ("a" * 100)
    long.mkdir()
    (long / "toolchain").symlink_to(layout.root())
    monkeypatch.setenv("FUSION_PLAN_HOME", str(long))
    warm()
    assert len(status().workers) == 1
    assert stop() == 1


def test_warming_without_a_compiler_is_quiet(home: Path) -> None:
    warm()
    assert not (home / "run").exists()


def test_a_lost_worker_names_its_log(real: Path) -> None:
    compiler = installed()
    error = daemon.not_running(compiler)
    assert f"{daemon.identity(compiler)}.log" in error.where and "toolchain install" in error.remedy
    assert "import tilelang" in daemon.not_running(replace(compiler, kind="importable")).remedy


def test_kernels_are_lowered_in_the_order_given_whatever_ends_first() -> None:
    slow = kernel("relay_add")
    results = lower([replace(slow, name="first", args={"blocks": 5}), fresh("second"), replace(slow, name="third", args={"blocks": 6})])
    assert [(result.name, result.blocks) for result in results] == [("first", 5), ("second", 1), ("third", 6)]
