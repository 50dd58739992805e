"""Levels hold what they promise, and draws are the same everywhere."""

from __future__ import annotations

import torch

import kernels
from fusion.verify.cases import LEVELS, cases_of
from fusion.verify.data import Draw, random_inputs


def test_attention_backward_has_enough_cases_of_each_level() -> None:
    found = cases_of(kernels.load("gqa_sink_bwd"), {}, LEVELS)
    by_level = {level: [c for c in found if c.level == level] for level in LEVELS}
    assert len(by_level["L0"]) >= 7 and len(by_level["L1"]) >= 8
    dtypes = {dict(c.parameters)["dtype"] for c in by_level["L0"]}
    assert dtypes == {"float16", "bfloat16"}
    assert any(dict(c.parameters)["window"] for c in by_level["L0"])
    assert all(c.refused for c in by_level["L2"]) and not any(c.refused for c in by_level["L1"])


def test_illegal_parameters_are_refused_by_the_operator() -> None:
    from fusion.errors import FusionError

    operator = kernels.load("gqa_sink_bwd")
    for case in cases_of(operator, {}, ("L2",)):
        try:
            operator.build(**dict(case.parameters))
        except FusionError:
            continue
        raise AssertionError(f"{case.name} was accepted")


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
