"""The steps of an installation. A finished step leaves a mark and is not repeated; an interrupted one starts over from its downloads."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fusion.errors import FusionError
from fusion.toolchain import apt, commands, discover, layout, recipe, wheels

Tick = Callable[[], None]

EMULATOR_AT_LEAST = 9
"""A `qemu-aarch64` found on PATH is used from this major version on; older ones run the compiler at half the speed."""


@dataclass(frozen=True)
class Step:
    """One step: `name` is its mark and its key in recipe.SIZES, `result` what it leaves below the toolchain's folder."""

    name: str
    title: str
    result: str
    run: Callable[[Tick], None]

    def done(self) -> bool:
        mark = _mark(self.name)
        return mark.exists() and mark.read_text(encoding="utf-8") == fingerprint() and (layout.root() / self.result).exists()

    def perform(self, tick: Tick) -> None:
        self.run(tick)
        _mark(self.name).parent.mkdir(parents=True, exist_ok=True)
        _mark(self.name).write_text(fingerprint(), encoding="utf-8")

    def sizes(self) -> recipe.Sizes:
        return recipe.SIZES[self.name]


def downloads() -> Path:
    return layout.root() / "downloads"


def _mark(name: str) -> Path:
    return layout.root() / "steps" / name


def fingerprint() -> str:
    """Changes when the recipe does, so that an installation by another version of fusion-plan is not taken for this one's."""
    parts = (recipe.REQUIREMENTS, recipe.PYTHON_PART, recipe.LIBRARY_PART, recipe.EMULATOR_PART)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def all_steps(kind: discover.Kind) -> list[Step]:
    """The steps for this machine, in order."""
    compiler = Step("wheels", "compiler (tilelang-ascend, numpy)", "site", _get_wheels)
    python = Step("sysroot", "Python 3.11 for aarch64", "sysroot", _get_sysroot)
    emulator = Step("emulator", "user-mode emulator", "emulator", _get_emulator)
    check = Step("check", "first start of the compiler", layout.manifest().name, lambda tick: _check(kind, tick))
    if kind == "emulated":
        return [compiler, python, emulator, check]
    return [compiler, check] if host_python() else [compiler, python, check]


def unfinished(kind: discover.Kind) -> list[Step]:
    """The steps that are still to do; what one step brings may decide whether another is needed."""
    return [step for step in all_steps(kind) if not step.done()]


def host_python() -> bool:
    """Whether this aarch64 machine's own Python can load the compiler: the right version, with new enough C++ libraries."""
    if sys.version_info[:2] != (3, 11):
        return False
    if not layout.site().exists():
        return True
    library = layout.site() / "tilelang/lib/libtvm.so"
    probe = [sys.executable, "-c", f"import ctypes; ctypes.CDLL({str(library)!r})"]
    return subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def _replace(partial: Path, final: Path) -> None:
    if final.exists():
        shutil.rmtree(final)
    os.replace(partial, final)


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def _get_wheels(tick: Tick) -> None:
    kept = downloads() / "wheels"
    wheels.download(kept, downloads() / "scratch", tick)
    partial = _fresh(layout.root() / "site.partial")
    wheels.unpack(kept, partial, downloads() / "scratch", tick)
    _replace(partial, layout.site())


def _get_sysroot(tick: Tick) -> None:
    packages: list[Path] = []
    for part in (recipe.PYTHON_PART, recipe.LIBRARY_PART):
        packages += _packages(part, tick)
    partial = _fresh(layout.root() / "sysroot.partial")
    apt.unpack(packages, partial, tick)
    merge_lib(partial)
    _replace(partial, layout.sysroot())


def _packages(part: recipe.DebianPart, tick: Tick) -> list[Path]:
    suite = apt.open_suite(downloads() / "apt", part, tick)
    return suite.download(downloads() / f"{part.suite}-{part.architecture}", tick)


def merge_lib(sysroot: Path) -> None:
    """Packages put libraries into lib/ and usr/lib/; the loader is looked for in the former and its libraries in the latter."""
    lib = sysroot / "lib"
    if lib.is_symlink() or not lib.exists():
        return
    shutil.copytree(lib, sysroot / "usr/lib", symlinks=True, dirs_exist_ok=True)
    shutil.rmtree(lib)
    lib.symlink_to("usr/lib")


def _get_emulator(tick: Tick) -> None:
    final = layout.emulator()
    shutil.rmtree(final.parent, ignore_errors=True)
    final.parent.mkdir(parents=True)
    present = suitable_emulator()
    if present is not None:
        final.symlink_to(present)
        return
    packages = _packages(recipe.EMULATOR_PART, tick)
    unpacked = _fresh(downloads() / "emulator")
    apt.unpack(packages, unpacked, tick)
    os.replace(unpacked / recipe.EMULATOR_PROGRAM, final)
    shutil.rmtree(unpacked)


def suitable_emulator() -> Path | None:
    """A recent enough user-mode emulator on PATH."""
    for name in ("qemu-aarch64", "qemu-aarch64-static"):
        found = shutil.which(name)
        if found and _major_version(found) >= EMULATOR_AT_LEAST:
            return Path(found)
    return None


def _major_version(program: str) -> int:
    try:
        text = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=10).stdout
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = re.search(r"version (\d+)", text)
    return int(match.group(1)) if match else 0


def _check(kind: discover.Kind, tick: Tick) -> None:
    """Start the compiler once and lower a kernel; writes its compiled modules, then the manifest that makes it found."""
    python = "sysroot" if layout.sysroot().exists() else sys.executable
    folder = _fresh(layout.root() / "check")
    folder.mkdir(parents=True)
    command = [*discover.command(kind, python), str(layout.WORKER / "boot.py"), "check", "--folder", str(folder), "--stubs"]
    remedy = "run `fusion-plan toolchain remove`, then install again; if it fails again, report the message above"
    text = commands.run(
        command, what="the installed compiler does not run", remedy=remedy, environment=dict(discover.environment(python)), tick=tick
    )
    shutil.rmtree(folder)
    version = text.strip().splitlines()[-1].partition("+")[0]
    if version != recipe.VERSION:
        raise FusionError(f"the installed compiler says that it is version {version}, not {recipe.VERSION}", remedy=remedy)
    manifest = {"kind": kind, "version": version, "python": python, "recipe": fingerprint()}
    partial = layout.manifest().with_suffix(".partial")
    partial.write_text(json.dumps(manifest), encoding="utf-8")
    os.replace(partial, layout.manifest())
