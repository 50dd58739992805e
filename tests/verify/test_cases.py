"""Levels hold what they promise, and draws are the same everywhere."""

from __future__ import annotations

import pytest
import torch

import kernels
from fusion.errors import FusionError
from fusion.graph import Graph, StageGraph, operator
from fusion.plan.device import Limits
from fusion.plan.planner import Planner
from fusion.verify.cases import LEVELS, cases_of
from fusion.verify.data import Draw, random_inputs
from fusion.verify.session import run_cases


def test_attention_backward_has_enough_cases_of_each_level() -> None:
    found = cases_of(kernels.load("gqa_sink_bwd"), {}, LEVELS)
    by_level = {level: [c for c in found if c.level == level] for level in LEVELS}
    assert len(by_level["L0"]) >= 7 and len(by_level["L1"]) >= 8
    dtypes = {dict(c.parameters)["dtype"] for c in by_level["L0"]}
    assert dtypes == {"float16", "bfloat16"}
    assert any(dict(c.parameters)["window"] for c in by_level["L0"])
    assert all(c.refused for c in by_level["L2"]) and not any(c.refused for c in by_level["L1"])


@pytest.mark.parametrize("name", kernels.names())
def test_illegal_parameters_are_refused_by_the_operator(name: str) -> None:
    found = kernels.load(name)
    for case in cases_of(found, {}, ("L2",)):
        with pytest.raises(FusionError):
            raise AssertionError(f"{case.name} was accepted: {found.build(**dict(case.parameters))}")


def test_an_operator_that_fails_where_it_has_to_refuse_is_told() -> None:
    @operator
    def halved(size: int = 64) -> StageGraph:
        """Y = X / size."""
        g = Graph("halved")
        g.dim("i", max(1, size))
        X = g.input("X", "i", "float32")
        with g.vector("scale"):
            Y = g.let("Y", X * (1 / size))
        g.output(Y)
        return g.build()

    (case,) = cases_of(halved, {}, ("L2",))
    (result,) = run_cases(halved, Planner(halved()).plan(1)[0].plan, [case], Limits(), lambda plan: plan)
    assert result.problem == "the operator fails with ZeroDivisionError: division by zero; it has to refuse this with a FusionError"


def test_draws_are_scaled_shifted_and_repeatable() -> None:
    graph = kernels.load("gqa_sink_bwd").build(heads=2, groups=1, seq_len=64, dim=64)
    plain, other = random_inputs(graph, Draw()), random_inputs(graph, Draw(scale=2.0, shift=1.0))
    assert torch.equal(random_inputs(graph, Draw())["Q"], plain["Q"])
    assert plain["Q"].dtype == torch.float16
    assert torch.allclose(other["Q"].double(), plain["Q"].double() * 2 + 1, atol=5e-3)
    assert not torch.equal(random_inputs(graph, Draw(seed=1))["Q"], plain["Q"])


def test_draws_are_tempered_where_results_would_outgrow_the_standard() -> None:
    from fusion.verify.data import PEAK, tempered

    graph = kernels.load("mlp").build(tokens=32, dim=512, hidden=512)
    draw = tempered(graph, Draw())
    assert draw.scale < 1
    from fusion.graph.evaluate import evaluate

    assert max(float(t.abs().max()) for t in evaluate(graph, random_inputs(graph, draw)).values()) <= PEAK
    attention = kernels.load("gqa_sink_bwd").build(heads=2, groups=1, seq_len=64, dim=64)
    assert tempered(attention, Draw()) == Draw()


def test_special_values_are_there() -> None:
    graph = kernels.load("gqa_sink_bwd").build(heads=2, groups=1, seq_len=64, dim=64)
    assert random_inputs(graph, Draw(special="nan"))["K"].isnan().any()
    assert random_inputs(graph, Draw(special="inf"))["K"].isinf().any()


def test_indices_of_rows_also_miss_at_both_ends() -> None:
    graph = kernels.load("sparse_mla_fwd").build(seq_len=4, kv_len=100, heads=16, dim=32, tail_dim=16, topk=20)
    drawn = random_inputs(graph, Draw())["indices"]
    assert (drawn.min(), drawn.max()) == (-1, 100)
    assert ((drawn >= 0) & (drawn < 100)).sum() == drawn.numel() - 2


def test_what_is_as_near_as_its_dtype_allows_is_right() -> None:
    """Beyond the standard's absolute bound in a float too coarse for it, and an integer that exact arithmetic rounds the other way."""
    from fusion.verify.run import unless_right

    golden = torch.tensor([-1e30, 1.0, 2.0], dtype=torch.float64)
    output = torch.tensor([-1e30, 1.5, 2.0])
    assert (unless_right(golden, output, None) - output.double()).tolist() == [0.0, -0.5, 0.0]
    whole, declared = torch.tensor([3, 7, -1], dtype=torch.int8), torch.tensor([4, 7, -1], dtype=torch.int8)
    assert unless_right(whole, torch.tensor([4, 7, 0], dtype=torch.int8), declared).tolist() == [4, 7, -1]
