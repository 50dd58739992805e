"""A small attention backward, its upstream plans, and what the compiler makes of them: shared by the tests of this folder."""

from __future__ import annotations

from importlib.resources import files

import pytest

from fusion.emit.emit import emit
from fusion.emit.program import Program
from fusion.graph import StageGraph
from fusion.passes import parse_pipeline, run_pipeline
from fusion.plan.text import from_text
from fusion.plan.types import Plan
from kernels.attention_sink import gqa_sink_bwd

SMALL = {"batch": 1, "heads": 2, "groups": 2, "seq_len": 160, "dim": 64}


@pytest.fixture(scope="session")
def graph() -> StageGraph:
    return gqa_sink_bwd(**SMALL)


def upstream(graph: StageGraph, count: int) -> Plan:
    """The shipped plan with so many kernels, after the default passes."""
    text = files("kernels").joinpath(f"plans/gqa_sink_bwd-{count}.plan").read_text()
    return run_pipeline(from_text(text, graph), parse_pipeline("default")).artefact


def program(graph: StageGraph, count: int) -> Program:
    return emit(upstream(graph, count))
