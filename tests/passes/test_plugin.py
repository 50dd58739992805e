"""A distribution of its own, really installed, adds its pass."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
from fusion.graph import Graph, exp
from fusion.passes import find, parse_pipeline, registry, run_graph_pipeline

info = find("drop-copies")
assert (info.owner, info.level) == ("fusion-plan-demo", "graph"), info
assert list(registry()) == sorted(registry()) and "retain-in-ub" in registry()
g = Graph("copied")
g.dim("r", 8)
x = g.input("x", "r", "float32")
with g.vector("all"):
    y = g.let("y", x)
    z = g.let("z", exp(y))
g.output(z)
result = run_graph_pipeline(g.build(), parse_pipeline("drop-copies"))
assert [op.args for op in result.artefact.stage("all").body] == [("x",)], result
print(info.doc)
"""


def run(target: Path, program: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(target), str(ROOT)])}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env, cwd=target, check=False)


def install(source: Path, target: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--target",
        str(target),
    ]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(ROOT / "tests" / "plugin", folder / "source", ignore=shutil.ignore_patterns("build", "*.egg-info"))
    install(folder / "source", folder / "site")
    return folder / "site"


def test_the_plugin_s_pass_is_found_and_runs(target: Path) -> None:
    done = run(target, PROGRAM)
    assert done.returncode == 0, done.stderr
    assert "Reads the source of a plain copy" in done.stdout


def test_a_second_owner_of_the_name_is_refused(target: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(target, site)
    info = site / "other_demo-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-demo\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fusion_plan.passes]\ndrop-copies = other_demo:DropCopies\n")
    done = run(site, "from fusion.passes import registry; registry()")
    assert done.returncode != 0
    assert "pass drop-copies is defined by" in done.stderr and "fusion-plan-demo" in done.stderr and "other-demo" in done.stderr
