"""Installing: resumable, one at a time, told beforehand, and taken away again. The steps here are small stand-ins."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fusion.errors import FusionError
from fusion.toolchain import discover, ensure, find, install, installation, layout, locks, possible_kind, recipe, remove, status, steps

Tick = Callable[[], None]


class Recorder:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.steps: list[str] = []
        self.bytes: list[int] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def step(self, title: str, total: int) -> None:
        self.steps.append(title)

    def advance(self, done: int) -> None:
        self.bytes.append(done)


class Machine:
    """Stand-in steps: `ran` lists those that ran; the step called `failing` raises once."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.failing = ""
        self.pause = 0.0

    def step(self, name: str) -> steps.Step:
        def run(tick: Tick) -> None:
            self.ran.append(name)
            (layout.root() / f"{name}.data").write_text("x" * 1000, encoding="utf-8")
            tick()
            time.sleep(self.pause)
            if self.failing == name:
                self.failing = ""
                raise FusionError("network unreachable", remedy="try again")
            if name == "check":
                manifest = {"kind": "emulated", "version": recipe.VERSION, "python": "sysroot"}
                layout.manifest().write_text(json.dumps(manifest), encoding="utf-8")

        return steps.Step(name, f"the {name}", "installed.json" if name == "check" else f"{name}.data", run)


@pytest.fixture
def machine(home: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(discover, "expected_kind", lambda: "emulated")
    monkeypatch.setattr(steps, "all_steps", lambda kind: [made.step(name) for name in ("wheels", "sysroot", "emulator", "check")])
    return made


def test_everything_is_told_before_anything_is_done(machine: Machine, home: Path) -> None:
    seen = Recorder()
    install(seen)
    (announcement,) = seen.said
    assert str(home / "toolchain") in announcement
    assert "180 MB" in announcement and "user-mode emulation" in announcement and "No root" in announcement
    assert seen.steps == ["the wheels", "the sysroot", "the emulator", "the check"]
    assert seen.bytes[0] >= 1000


def test_a_finished_step_is_not_repeated_after_an_interruption(machine: Machine) -> None:
    machine.failing = "sysroot"
    with pytest.raises(FusionError, match="network unreachable"):
        install(Recorder())
    assert find() is None and status().unfinished
    seen = Recorder()
    install(seen)
    assert machine.ran == ["wheels", "sysroot", "sysroot", "emulator", "check"]
    assert find() is not None
    assert "the wheels" not in seen.said[0] and "the sysroot" in seen.said[0]


def test_an_installed_compiler_is_left_as_it_is(machine: Machine) -> None:
    assert install(Recorder()) == ensure() == install(Recorder())
    assert machine.ran == ["wheels", "sysroot", "emulator", "check"]


def test_steps_of_another_recipe_are_repeated(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    install(Recorder())
    layout.manifest().unlink()
    monkeypatch.setattr(recipe, "REQUIREMENTS", ("tilelang-ascend==9.9",))
    install(Recorder())
    assert machine.ran.count("wheels") == 2


def test_a_step_whose_result_has_gone_is_repeated(machine: Machine) -> None:
    install(Recorder())
    layout.manifest().unlink()
    (layout.root() / "sysroot.data").unlink()
    install(Recorder())
    assert machine.ran == ["wheels", "sysroot", "emulator", "check", "sysroot", "check"]


def test_of_two_at_once_the_second_waits_and_says_so(machine: Machine) -> None:
    machine.pause = 0.2
    observers = [Recorder(), Recorder()]
    threads = [threading.Thread(target=install, args=(observer,)) for observer in observers]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    for thread in threads:
        thread.join()
    assert machine.ran == ["wheels", "sysroot", "emulator", "check"]
    assert observers[1].steps == []
    assert len(observers[1].said) == 1 and observers[1].said[0].startswith("waiting for the installation by process ")


def test_the_lock_of_a_killed_process_is_free(home: Path) -> None:
    script = (
        "import time, pathlib; from fusion.toolchain import locks\n"
        f"with locks.held(pathlib.Path({str(home / 'x.lock')!r})):\n    print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    waited: list[str] = []
    threading.Timer(0.3, holder.kill).start()
    with locks.held(home / "x.lock", waiting=waited.append):
        assert waited == [str(holder.pid)]
    holder.wait()
    with locks.held(home / "x.lock", waiting=waited.append):
        assert len(waited) == 1


def test_a_full_disk_is_said_before_the_download(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=100_000_000))
    with pytest.raises(FusionError, match=r"needs 542 MB in .*100 MB are free") as caught:
        install(Recorder())
    assert "FUSION_PLAN_HOME" in caught.value.remedy
    assert machine.ran == []


def test_a_home_that_cannot_be_written_is_an_error_with_its_name(machine: Machine, home: Path) -> None:
    home.mkdir()
    (home / "toolchain").write_text("in the way", encoding="utf-8")
    with pytest.raises(FusionError, match="toolchain") as caught:
        install(Recorder())
    assert "FUSION_PLAN_HOME" in caught.value.remedy


def test_remove_takes_away_what_was_installed_and_nothing_else(machine: Machine, home: Path) -> None:
    install(Recorder())
    layout.results().mkdir(parents=True)
    (layout.results() / "a.json").write_text("{}", encoding="utf-8")
    (home / "cache/simulator").mkdir()
    assert remove(Recorder()) >= 4000
    assert find() is None
    assert sorted(path.name for path in home.rglob("*")) == ["cache", "simulator"]
    (home / "cache/simulator").rmdir()
    remove(Recorder())
    assert not home.exists()


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(("system", "machine_name"), [("darwin", "arm64"), ("win32", "AMD64"), ("linux", "riscv64")])
def test_other_machines_are_told_what_it_needs(system: str, machine_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr("platform.machine", lambda: machine_name)
    with pytest.raises(FusionError, match=f"cannot run on {system} {machine_name}"):
        possible_kind()
    assert f"cannot run on {system}" in status().obstacle


@pytest.mark.parametrize(("machine_name", "kind"), [("x86_64", "emulated"), ("aarch64", "native")])
def test_the_kind_follows_the_processor(machine_name: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: machine_name)
    assert possible_kind() == kind
    names = [step.name for step in steps.all_steps(possible_kind())]
    assert ("emulator" in names) == (kind == "emulated")
    assert (names[0], names[-1]) == ("wheels", "check")


@pytest.mark.usefixtures("home")
def test_installing_can_be_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(installation.NO_INSTALL_VARIABLE, "1")
    with pytest.raises(FusionError, match="forbids") as caught:
        ensure()
    assert "fusion-plan toolchain install" in caught.value.remedy


@pytest.mark.usefixtures("home")
def test_a_manifest_of_another_processor_or_half_written_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discover, "expected_kind", lambda: "native")
    layout.root().mkdir(parents=True)
    layout.manifest().write_text(json.dumps({"kind": "emulated", "version": "1", "python": "sysroot"}), encoding="utf-8")
    assert find() is None
    layout.manifest().write_text(json.dumps({"kind": "native", "version": "0.0.1", "python": "sysroot"}), encoding="utf-8")
    assert find() is None, "an installation by another release of fusion-plan"
    layout.manifest().write_text('{"kind": "nat', encoding="utf-8")
    assert find() is None


@pytest.mark.usefixtures("home")
def test_an_importable_compiler_comes_first(machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(Recorder())
    package = tmp_path / "path/tilelang"
    (package / "src/tl_templates/ascend").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('must not be imported to be found')", encoding="utf-8")
    (package / "VERSION").write_text("0.2.0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(package.parent))
    found = find()
    assert found is not None and found.kind == "emulated", "a tilelang without Ascend templates is another compiler"
    (package / "src/tl_templates/ascend/common.h").touch()
    found = find()
    assert found is not None and found.kind == "emulated", "a source tree that is not built cannot run"
    (package / "lib").mkdir()
    (package / "lib/libtilelang.so").touch()
    found = find()
    assert found is not None
    assert (found.kind, found.version, found.command, found.stubs) == ("importable", "0.2.0", (sys.executable,), False)


def test_the_merged_library_folder_keeps_both_parts(tmp_path: Path) -> None:
    for name in ("lib/arch/libc.so", "usr/lib/arch/libstdc.so"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    (tmp_path / "lib/ld.so").symlink_to("arch/libc.so")
    steps.merge_lib(tmp_path)
    steps.merge_lib(tmp_path)
    assert (tmp_path / "lib").is_symlink()
    assert sorted(path.name for path in (tmp_path / "lib/arch").iterdir()) == ["libc.so", "libstdc.so"]
    assert (tmp_path / "usr/lib/ld.so").read_text(encoding="utf-8") == "lib/arch/libc.so"


@pytest.mark.parametrize(("version", "used"), [("qemu-aarch64 version 10.0.2", True), ("qemu-aarch64 version 7.2.1", False), ("", False)])
def test_a_recent_emulator_on_the_path_is_used(version: str, used: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "qemu-aarch64"
    program.write_text(f"#!/bin/sh\necho '{version}'\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert steps.suitable_emulator() == (program if used else None)
