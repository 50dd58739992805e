"""Random small operators from planner to simulator: every plan gives the numbers of the operator without a finding, after any passes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings

from fusion.emit.emit import emit
from fusion.errors import FusionError
from fusion.graph import StageGraph
from fusion.graph.evaluate import evaluate
from fusion.passes import parse_pipeline, registry, run_pipeline
from fusion.passes.base import CompilerPass
from fusion.plan.planner import Planner
from fusion.plan.types import Plan
from fusion.toolchain import find
from tests.inputs import random_inputs
from tests.strategies import stage_graphs

TOLERANCE = 0.02  # of the magnitude: values between stages are rounded to fp16
SIZES = {"b": 1, "q": 8, "k": 13, "d": 16}  # times the strategy's 2 to 5: tails in most dims

needs_tools = pytest.mark.skipif(find() is None or shutil.which("g++") is None, reason="needs the compiler and g++")
quick = settings(deadline=None, derandomize=True, phases=[Phase.generate], suppress_health_check=list(HealthCheck))


def sized(graph: StageGraph) -> StageGraph:
    return replace(graph, dims=tuple(replace(d, size=d.size * SIZES[d.name]) for d in graph.dims))


def plans(graph: StageGraph) -> Iterator[Plan]:
    """The cheapest plans with the fewest and the most kernels; none if a rule forbids all."""
    planner = Planner(graph)
    found = [p[0].plan for p in planner.possible(tuple(range(1, len(planner.atoms) + 1)), 1).values() if p]
    yield from {str(p): p for p in (found[:1] + found[-1:])}.values()


def variants(plan: Plan) -> Iterator[Plan]:
    """The plan as it is, after the default pipeline, and after every other pass alone, each once."""
    names = [n for n, info in registry().items() if not issubclass(info.cls, CompilerPass)]
    pipelines = [(), parse_pipeline("default"), *(parse_pipeline(n) for n in names)]
    left = [plan if not p else run_pipeline(plan, p).artefact for p in pipelines]
    yield from {str(p): p for p in left}.values()


@quick
@given(stage_graphs(max_stages=5, scans=True))
def test_every_plan_emits_or_is_refused(graph: StageGraph) -> None:
    graph = sized(graph)
    found = list(plans(graph))
    for plan in found:
        assert all(len(line) <= 140 for k in emit(plan).kernels for line in k.source.splitlines())
    if not found:
        with pytest.raises(FusionError, match=r"\(rule [a-z-]+\)"):
            Planner(graph).plan(1)


@needs_tools
@settings(quick, max_examples=8)
@given(stage_graphs(max_stages=4, scans=True))
def test_plans_and_passes_keep_the_numbers(graph: StageGraph) -> None:
    found = list(plans(sized(graph)))
    assume(found)
    for plan in found:
        for variant in variants(plan):
            assert_right(variant)


def assert_right(plan: Plan) -> None:
    """Runs the plan on the simulator: no finding, and close to the operator evaluated in its own dtypes."""
    from fusion.verify.run import verify_plan

    inputs = {n: (t / 4).half() for n, t in random_inputs(plan.graph).items()}
    golden = evaluate(plan.graph, {n: t.double() for n, t in inputs.items()})
    verdict = verify_plan(plan, inputs)
    assert verdict.errors == (), f"{verdict.errors[0]}\n{plan}"
    for name, result in verdict.outputs.items():
        assert result.special_match, f"{name}: {result}\n{plan}"
        assert result.max_abs <= TOLERANCE * max(1.0, golden[name].abs().max().item()), f"{name}: {result}\n{plan}"
