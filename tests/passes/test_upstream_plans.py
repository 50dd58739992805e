"""Every named pipeline leaves the shipped plans of attention backward legal, with as many kernels as before."""

from __future__ import annotations

from pathlib import Path

import pytest

import passes
from fusion.graph import StageGraph
from fusion.passes import parse_pipeline, run_pipeline
from fusion.passes.check import plan_problems
from fusion.plan.text import from_text
from kernels.attention_sink import gqa_sink_bwd

PLANS = sorted((Path(__file__).parents[2] / "kernels" / "plans").glob("gqa_sink_bwd-*.plan"))


@pytest.fixture(scope="module")
def graph() -> StageGraph:
    return gqa_sink_bwd(heads=4, groups=2, seq_len=500, dim=64, window=100)


@pytest.mark.parametrize("file", PLANS, ids=lambda f: f.stem)
def test_pipelines_keep_the_plans_legal(file: Path, graph: StageGraph) -> None:
    plan = from_text(file.read_text(), graph)
    for name in passes.PIPELINES:
        after = run_pipeline(plan, parse_pipeline(name)).artefact
        assert plan_problems(after) == (), name
        assert len(after.kernels) == len(plan.kernels), name
    precise = run_pipeline(plan, parse_pipeline("default"))
    assert "compensate-gemm" in precise.modified
    assert precise.artefact.graph.value("dk_acc_fix").dtype == "float32"
