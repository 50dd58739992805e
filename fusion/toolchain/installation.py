"""Putting the compiler on this machine and taking it away again, one process at a time."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path

from fusion import paths
from fusion.errors import FusionError
from fusion.toolchain import commands, daemon, discover, layout, locks, recipe, steps
from fusion.toolchain.progress import Lines, Observer

NO_INSTALL_VARIABLE = "FUSION_PLAN_NO_INSTALL"
HOW_TO_GET = "run `fusion-plan toolchain install`"


def ensure(observer: Observer | None = None) -> discover.Compiler:
    """The compiler of this machine, installed first if there is none; raises FusionError if that is impossible.

    Without an observer, what is done is told line by line on standard error.
    """
    found = discover.find()
    if found is not None:
        return found
    if os.environ.get(NO_INSTALL_VARIABLE):
        raise FusionError(f"no TileLang-Ascend compiler, and {NO_INSTALL_VARIABLE} forbids to install one", remedy=HOW_TO_GET)
    return install(observer)


def install(observer: Observer | None = None) -> discover.Compiler:
    """Install the compiler below fusion-plan's home; does nothing if one is found. Raises FusionError with what is missing."""
    seen = observer or Lines()
    kind = possible_kind()
    with locks.held(_lock(), waiting=lambda owner: seen.say(f"waiting for the installation by process {owner} to end")):
        found = discover.find()
        if found is not None:
            return found
        _install(kind, seen)
    made = discover.find()
    assert made is not None, layout.manifest()
    return made


def possible_kind() -> discover.Kind:
    """The kind of installation that this machine can have; raises FusionError if none."""
    kind = discover.expected_kind()
    if kind is None:
        raise FusionError(
            f"tilelang-ascend cannot run on {sys.platform} {platform.machine()}: it needs Linux on aarch64, or on x86-64 to emulate it",
            remedy="use a Linux machine, container or virtual machine; planning and emitting work here all the same",
        )
    return kind


def announcement(kind: discover.Kind) -> str:
    """What an installation is going to do, for the user to read before it does it."""
    todo = steps.unfinished(kind)
    megabytes = {name: sum(getattr(step.sizes(), name) for step in todo) // recipe.MEGABYTE for name in ("download", "disk")}
    how = "run natively" if kind == "native" else "for aarch64, run here by user-mode emulation"
    lines = [
        f"Installing the TileLang-Ascend compiler (tilelang-ascend {recipe.VERSION}, {how}) in {layout.root()}",
        f"Downloading about {megabytes['download']} MB, keeping {megabytes['disk']} MB, from pip's index and the archive that apt uses:",
        *(f"  - {step.title}: {step.sizes().download // recipe.MEGABYTE} MB" for step in todo if step.sizes().download),
        "No root rights needed, nothing is registered on the system; `fusion-plan toolchain remove` takes it away.",
    ]
    return "\n".join(line for line in lines if megabytes["download"] or not line.startswith("Downloading"))


def _install(kind: discover.Kind, observer: Observer) -> None:
    check_space(kind)
    observer.say(announcement(kind))
    try:
        layout.root().mkdir(parents=True, exist_ok=True)
        while todo := steps.unfinished(kind):
            _perform(todo[0], observer)
    except OSError as error:
        raise FusionError(
            f"installing in {layout.root()}: {error}", remedy="free space or set FUSION_PLAN_HOME to another folder"
        ) from error
    shutil.rmtree(steps.downloads(), ignore_errors=True)


def _perform(step: steps.Step, observer: Observer) -> None:
    """Run one step with its progress: the bytes that have come to the installation's folder since it began."""
    sizes = step.sizes()
    observer.step(step.title, sizes.download + sizes.disk)
    before = commands.size_of(layout.root())
    step.perform(lambda: observer.advance(max(0, commands.size_of(layout.root()) - before)))


def check_space(kind: discover.Kind) -> None:
    """Raise FusionError if the disk has not the space that the missing steps need at their worst."""
    todo = steps.unfinished(kind)
    needed = sum(step.sizes().download + step.sizes().disk for step in todo)
    place = layout.root()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if free < needed:
        raise FusionError(
            f"the compiler needs {needed // recipe.MEGABYTE} MB in {layout.root()}, and {free // recipe.MEGABYTE} MB are free",
            remedy="free space or set FUSION_PLAN_HOME to a folder on another disk",
        )


def remove(observer: Observer | None = None) -> int:
    """Stop the workers and delete all that installation and lowering left; returns the bytes freed."""
    seen = observer or Lines()
    daemon.stop_all()
    freed = 0
    with locks.held(_lock(), waiting=lambda owner: seen.say(f"waiting for process {owner}")):
        for folder in (layout.root(), layout.run(), layout.results()):
            freed += commands.size_of(folder)
            shutil.rmtree(folder, ignore_errors=True)
    _lock().unlink(missing_ok=True)
    for folder in (layout.results().parent, paths.home()):
        _remove_if_empty(folder)
    return freed


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return


def _lock() -> Path:
    return paths.home() / "install.lock"
