"""The gate of a mixture of experts against torch."""

from __future__ import annotations

import pytest
import torch

from fusion.errors import FusionError
from fusion.graph.evaluate import evaluate
from kernels.moe import moe_gate
from tests.inputs import assert_close, random_inputs


@pytest.mark.parametrize(("experts", "topk", "scale"), [(9, 4, 1.0), (6, 6, 2.5), (5, 1, 0.5)])
def test_against_torch(experts: int, topk: int, scale: float) -> None:
    graph = moe_gate(tokens=7, experts=experts, topk=topk, scale=scale)
    inputs = random_inputs(graph)
    best, ids = torch.softmax(inputs["logits"], dim=1).topk(topk, dim=1)
    have = evaluate(graph, inputs)
    assert torch.equal(have["ids"].long(), ids)
    assert_close(have["weights"], scale * best / best.sum(dim=1, keepdim=True))


def test_equal_experts_are_chosen_in_their_order() -> None:
    graph = moe_gate(tokens=2, experts=8, topk=3)
    logits = torch.zeros(2, 8, dtype=torch.float64)
    logits[1, [2, 5, 6, 7]] = 1.0
    have = evaluate(graph, {"logits": logits})
    assert have["ids"].tolist() == [[0, 1, 2], [2, 5, 6]]
    assert_close(have["weights"], torch.full((2, 3), 1 / 3, dtype=torch.float64))


@pytest.mark.parametrize(("topk", "why"), [(9, "topk=9 is more than 8"), (0, "topk=0 is less than 1")])
def test_refuses_what_cannot_be_chosen(topk: int, why: str) -> None:
    with pytest.raises(FusionError, match=why):
        moe_gate(experts=8, topk=topk)
