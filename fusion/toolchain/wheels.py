"""The compiler's wheels, by pip with the machine's own index settings."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from fusion.errors import FusionError
from fusion.toolchain import commands, recipe

REMEDY = "check the network and pip's index settings (`pip config list`), then run the same command again: it resumes"


def pip() -> list[str]:
    """The command of a pip: this Python's own, else one on PATH; raises FusionError if there is none."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    for name in ("pip3", "pip"):
        found = shutil.which(name)
        if found:
            return [found]
    raise FusionError("no pip: neither in this Python nor on PATH", remedy=f"run `{sys.executable} -m ensurepip`")


def _for_compiler() -> list[str]:
    """Options that make pip choose wheels for the compiler's Python instead of this one."""
    platforms = [option for name in recipe.PLATFORMS for option in ("--platform", name)]
    return ["--only-binary=:all:", "--no-deps", "--python-version", recipe.PYTHON, "--implementation", "cp", *platforms]


def download(folder: Path, scratch: Path, tick: Callable[[], None]) -> None:
    """Put the wheels of the recipe into `folder`; those already there are not fetched again."""
    for path in (folder, scratch):
        path.mkdir(parents=True, exist_ok=True)
    command = [*pip(), "download", "--no-input", "--find-links", str(folder), "-d", str(folder), *_for_compiler(), *recipe.REQUIREMENTS]
    commands.run(command, what="downloading the compiler with pip", remedy=REMEDY, environment=_environment(scratch), tick=tick)


def unpack(wheels: Path, target: Path, scratch: Path, tick: Callable[[], None]) -> None:
    """Install the downloaded wheels into an empty folder, without asking any index."""
    scratch.mkdir(parents=True, exist_ok=True)
    offline = ["--no-index", "--find-links", str(wheels), "--no-compile"]
    command = [*pip(), "install", "--no-input", "--target", str(target), *offline, *_for_compiler(), *recipe.REQUIREMENTS]
    remedy = "run `fusion-plan toolchain remove`, then install again"
    commands.run(command, what="unpacking the compiler", remedy=remedy, environment=_environment(scratch), tick=tick)


def _environment(scratch: Path) -> dict[str, str]:
    """pip works below our folder, where its progress is seen; a user-wide default of --user would contradict --target."""
    return {**os.environ, "TMPDIR": str(scratch), "PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}
