"""Every pass that rewrites a graph keeps the golden, on random graphs and on attention backward."""

from __future__ import annotations

import torch
from hypothesis import HealthCheck, given, settings

from fusion.graph import StageGraph, verify
from fusion.graph.evaluate import evaluate
from fusion.passes import GraphPass, PlanPass, find, registry, run_pipeline
from fusion.passes.registry import OWN
from tests.inputs import assert_close, random_inputs
from tests.passes.small import backward, fused
from tests.strategies import stage_graphs

INFOS = [i for i in registry().values() if i.owner == OWN]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(stage_graphs(max_stages=6, scans=True))
def test_graph_passes_keep_the_golden(graph: StageGraph) -> None:
    inputs = random_inputs(graph)
    want = evaluate(graph, inputs)
    for info in (i for i in INFOS if issubclass(i.cls, GraphPass)):
        made = info.cls()
        assert isinstance(made, GraphPass)
        after = made.run(graph).artefact
        verify(after)
        have = evaluate(after, inputs)
        assert all(torch.equal(have[name].nan_to_num(), want[name].nan_to_num()) for name in want), info.name


def test_all_passes_keep_the_golden_of_a_plan() -> None:
    inputs = random_inputs(backward())
    want = evaluate(backward(), inputs)
    for info in (i for i in INFOS if issubclass(i.cls, GraphPass | PlanPass)):
        plan = run_pipeline(fused(), [info.cls()]).artefact
        for name, value in evaluate(plan.graph, inputs).items():
            assert_close(value, want[name], 1e-12)


def test_precision_as_declared_gets_better_with_each_step() -> None:
    inputs = {n: t.half().double() for n, t in random_inputs(backward()).items()}
    golden = evaluate(backward(), inputs)

    def error(names: list[str]) -> float:
        plan = run_pipeline(fused(), [find(n).cls() for n in names]).artefact
        graph = plan.graph.with_stages(s for s in plan.graph.stages)
        values = evaluate_unrounded(graph, inputs)
        return (values - golden["dK"]).abs().max().item()

    plain, retained, compensated = error([]), error(["retain-in-ub"]), error(["retain-in-ub", "compensate-gemm"])
    assert compensated < retained / 20 < plain / 20


def evaluate_unrounded(graph: StageGraph, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """dK before its own rounding to fp16."""
    from fusion.graph.evaluate import evaluate_all

    return evaluate_all(graph, inputs, "declared")["dk_acc"].double()
