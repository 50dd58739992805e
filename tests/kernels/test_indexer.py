"""The indexer against a loop over queries in float64."""

from __future__ import annotations

import pytest
import torch

from fusion.errors import FusionError
from fusion.graph.evaluate import evaluate
from kernels.indexer import indexer_topk
from tests.inputs import assert_close, random_inputs


@pytest.mark.parametrize(("seq_len", "topk"), [(9, 4), (6, 6), (5, 1)])
def test_against_a_loop(seq_len: int, topk: int) -> None:
    graph = indexer_topk(batch=2, seq_len=seq_len, heads=3, dim=4, topk=topk)
    inputs = random_inputs(graph)
    have = evaluate(graph, inputs)
    for b in range(2):
        for i in range(seq_len):
            dots = inputs["Q"][b, i] @ inputs["K"][b, : i + 1].T
            score = (dots.clamp(min=0) * inputs["weights"][b, i][:, None]).sum(0) / 2
            best = sorted(range(i + 1), key=lambda k: (-score[k].item(), k))[:topk]
            lacking = topk - len(best)
            assert have["indices"][b, i].tolist() == best + [-1] * lacking
            want = torch.cat([torch.softmax(score[best], 0), torch.zeros(lacking, dtype=torch.float64)])
            assert_close(have["scores"][b, i], want)


def test_refuses_to_keep_more_than_there_are() -> None:
    with pytest.raises(FusionError, match="topk=64 is more than 32"):
        indexer_topk(seq_len=32)
