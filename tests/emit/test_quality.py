"""Emitted source reads as written by hand: ruff finds nothing in it, `ruff format` leaves it as it is, nothing is unused."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kernels
from fusion.emit.emit import emit
from fusion.passes import parse_pipeline, run_pipeline
from fusion.plan.planner import Planner
from fusion.plan.types import Plan

CONFIG = Path(__file__).parents[2] / "pyproject.toml"
OPERATORS: list[tuple[str, dict[str, int | str]]] = [
    ("gemm", {"M": 16, "N": 16, "K": 16}),
    ("gemm_bias_relu", {"M": 200, "N": 37, "K": 300}),
    ("rms_norm", {}),
    ("layer_norm", {"tokens": 9, "dim": 1030}),
    ("attention_fwd", {"seq_len": 200, "dim": 64, "window": 70}),
    ("mha_bwd", {"heads": 2, "seq_len": 200, "dim": 64, "dtype": "bfloat16"}),
    ("gdn_chunk_h", {"seq_len": 128, "heads": 2}),
    ("gdn_kkt", {"seq_len": 128, "heads": 2}),
    ("gqa_sink_bwd", {"heads": 4, "groups": 2, "seq_len": 200, "dim": 64}),
]


def plans(name: str, parameters: dict[str, int | str]) -> list[Plan]:
    planner = Planner(kernels.load(name)(**parameters))
    found = planner.possible((1, 2, 4), 1).values()
    return [run_pipeline(p[0].plan, parse_pipeline("default")).artefact for p in found if p]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("emitted")
    for name, parameters in OPERATORS:
        for plan in plans(name, parameters):
            program = emit(plan)
            for k in program.kernels:
                (folder / f"{name}_{len(plan.kernels)}_{k.name}.py").write_text(k.source)
            (folder / f"{name}_{len(plan.kernels)}_host.py").write_text(program.wrapper)
    return folder


@pytest.mark.parametrize("command", [("check",), ("format", "--check")], ids=["check", "format"])
def test_ruff_has_nothing_to_say(sources: Path, command: tuple[str, ...]) -> None:
    ruff = shutil.which("ruff", path=str(Path(sys.executable).parent)) or shutil.which("ruff")
    if ruff is None:
        pytest.skip("needs ruff")
    run = subprocess.run([ruff, *command, "--no-cache", "--config", str(CONFIG), str(sources)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_every_buffer_and_parameter_is_used(sources: Path) -> None:
    for path in sources.glob("*_k[0-9]*.py"):
        text = path.read_text()
        declared = re.findall(r"^ +(\w+)(?: = T\.alloc_|: T\.Tensor)", text, re.MULTILINE)
        assert declared
        unused = [n for n in declared if len(re.findall(rf"\b{n}\b", text)) < 2]
        assert not unused, f"{path.name}: {unused}"


def test_names_are_those_of_the_operator(sources: Path) -> None:
    numbered = {p.name: found for p in sources.iterdir() if (found := re.findall(r"\w+__\d+\w*", p.read_text()))}
    assert not numbered
