"""compensate-gemm earns its place: the generated code misses the precision standard without it and meets it with it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fusion.graph import StageGraph
from fusion.passes import parse_pipeline, run_pipeline
from fusion.plan.text import from_text
from fusion.precision import Comparison
from fusion.toolchain import find
from kernels.attention_sink import gqa_sink_bwd
from tests.inputs import random_inputs

PLAN = Path(__file__).parents[2] / "kernels" / "plans" / "gqa_sink_bwd-2.plan"
GRADIENTS = ("dQ", "dK", "dV")

pytestmark = pytest.mark.skipif(find() is None or shutil.which("g++") is None, reason="needs the compiler and g++")


@pytest.fixture(scope="module")
def graph() -> StageGraph:
    return gqa_sink_bwd(heads=4, groups=4, seq_len=131, dim=64, block_M=64, block_N=64)


def outputs(graph: StageGraph, pipeline: str) -> dict[str, Comparison]:
    from fusion.verify.run import verify_plan

    inputs = {n: t if n == "sink" else t.half().double() for n, t in random_inputs(graph).items()}
    plan = run_pipeline(from_text(PLAN.read_text(), graph), parse_pipeline(pipeline)).artefact
    verdict = verify_plan(plan, inputs)
    assert verdict.errors == ()
    return dict(verdict.outputs)


def test_without_it_all_three_gradients_fail(graph: StageGraph) -> None:
    found = outputs(graph, "")
    assert {n: found[n].passed for n in GRADIENTS} == dict.fromkeys(GRADIENTS, False), found


def test_with_it_they_pass(graph: StageGraph) -> None:
    found = outputs(graph, "retain-in-ub,compensate-gemm")
    assert {n: found[n].passed for n in GRADIENTS} == dict.fromkeys(GRADIENTS, True), found
    assert all(found[n].ratio > 0.995 for n in GRADIENTS), found
