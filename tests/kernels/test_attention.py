"""Attention forward and backward against plain softmax in float64 and its autograd."""

from __future__ import annotations

import pytest
import torch

from fusion.errors import FusionError
from fusion.graph.evaluate import evaluate
from kernels.attention import attention_fwd, mha_bwd
from tests.inputs import assert_close, random_inputs


def plain(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, causal: bool, window: int | None):
    groups = Q.shape[1] // K.shape[1]
    scores = Q @ K.repeat_interleave(groups, 1).transpose(2, 3) * Q.shape[-1] ** -0.5
    distance = torch.arange(Q.shape[2])[:, None] + (K.shape[2] - Q.shape[2]) - torch.arange(K.shape[2])[None]
    hidden = torch.zeros_like(distance, dtype=torch.bool)
    if causal:
        hidden |= distance < 0
    if window:
        hidden |= distance >= window
    scores = scores.masked_fill(hidden, -torch.inf)
    return torch.softmax(scores, -1) @ V.repeat_interleave(groups, 1), torch.logsumexp(scores, -1)


@pytest.mark.parametrize(("causal", "window"), [(False, None), (True, None), (True, 4), (False, 4)])
@pytest.mark.parametrize(("groups", "kv_len"), [(1, None), (2, 13), (4, 20)])
@pytest.mark.parametrize("step", [None, 5])
def test_forward(causal: bool, window: int | None, groups: int, kv_len: int | None, step: int | None) -> None:
    graph = attention_fwd(batch=2, heads=4, groups=groups, seq_len=11, kv_len=kv_len, dim=5, causal=causal, window=window)
    inputs = random_inputs(graph)
    o, lse = plain(**inputs, causal=causal, window=window)
    have = evaluate(graph, inputs, scan_step=step)
    assert_close(have["O"], o)
    assert_close(have["lse"], lse)


@pytest.mark.parametrize(("causal", "window"), [(False, None), (True, None), (True, 4)])
@pytest.mark.parametrize(("groups", "dim_v"), [(1, None), (2, 3)])
def test_backward(causal: bool, window: int | None, groups: int, dim_v: int | None) -> None:
    graph = mha_bwd(batch=2, heads=4, groups=groups, seq_len=11, dim=5, dim_v=dim_v, causal=causal, window=window)
    inputs = random_inputs(graph)
    leaves = {n: inputs[n].clone().requires_grad_() for n in "QKV"}
    o, lse = plain(**leaves, causal=causal, window=window)
    o.backward(inputs["dO"])
    have = evaluate(graph, inputs | {"O": o.detach(), "lse": lse.detach()})
    for name, leaf in leaves.items():
        assert leaf.grad is not None
        assert_close(have[f"d{name}"], leaf.grad)


@pytest.mark.parametrize(
    ("operator", "arguments", "message"),
    [
        (attention_fwd, {"heads": 6, "groups": 4}, "heads=6 is no multiple of groups=4"),
        (attention_fwd, {"groups": 0}, "groups=0"),
        (attention_fwd, {"window": 0}, "window=0 is less than 1"),
        (attention_fwd, {"seq_len": 64, "kv_len": 32}, "kv_len=32 is less than 64"),
        (mha_bwd, {"heads": 6, "groups": 4}, "heads=6"),
    ],
)
def test_refuses(operator, arguments: dict[str, int], message: str) -> None:
    with pytest.raises(FusionError, match=message):
        operator(**arguments)
