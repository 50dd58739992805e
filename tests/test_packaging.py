"""A wheel holds every file that the package needs, and works outside of the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("fusion", "passes", "kernels")
TOP_LEVEL = {"fusion", "passes", "kernels", "examples", "tests", "pyproject.toml", "README.md", "docs", "benchmarks"}
LEFT_BY_TOOLS = {"out", "build", "dist", "fusion_plan.egg-info", "__pycache__", "node_modules"}

PROGRAM = """
import json, sys
from pathlib import Path
import fusion, kernels
from fusion.cli.main import main
assert str(Path(fusion.__file__)).startswith(sys.argv.pop(1)), fusion.__file__
main()
"""


def sources() -> set[str]:
    """All files of the packages, but for what Python leaves there."""
    files = [f for package in PACKAGES for f in (ROOT / package).rglob("*") if f.is_file() and f.suffix != ".pyc"]
    return {str(f.relative_to(ROOT)) for f in files}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns("__pycache__")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, folder / "source" / package, ignore=ignored)
    for file in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / file, folder / "source")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-index", "--no-build-isolation", "-w", str(folder)]
    done = subprocess.run([*command, str(folder / "source")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(folder), str(wheel)]
    subprocess.run(command, check=True)
    return folder


def installed(site: Path, folder: Path, *arguments: str) -> str:
    """What `fusion-plan ARGUMENTS` of the installed wheel prints; the checkout is not on the path."""
    env = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-c", PROGRAM, str(site), *arguments]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    names = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    assert names == sources(), "add the missing file type to [tool.setuptools.package-data]"


def test_the_wheel_plans_and_emits_outside_of_the_checkout(site: Path, tmp_path: Path) -> None:
    assert "gqa_sink_bwd" in installed(site, tmp_path, "list")
    installed(site, tmp_path, "gqa_sink_bwd", "--target", "2", "--fast")
    assert len(list((tmp_path / "out" / "gqa_sink_bwd-2" / "kernels").glob("*.py"))) == 2


def test_the_top_level_holds_what_it_should() -> None:
    found = {p.name for p in ROOT.iterdir() if not p.name.startswith(".")}
    assert found - LEFT_BY_TOOLS == TOP_LEVEL
