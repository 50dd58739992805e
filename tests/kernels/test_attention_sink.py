"""gqa_sink_bwd against plain attention in float64 and its autograd."""

from __future__ import annotations

import pytest
import torch

from fusion.errors import FusionError
from fusion.graph.evaluate import evaluate
from kernels.attention_sink import gqa_sink_bwd
from tests.inputs import assert_close, random_inputs


def plain(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, sink: torch.Tensor, scale: float, window: int | None):
    """O and lse: softmax over the scores and one further logit a head, which has no value row."""
    groups, length = Q.shape[1] // K.shape[1], Q.shape[2]
    keys, values = K.repeat_interleave(groups, 1), V.repeat_interleave(groups, 1)
    scores = Q @ keys.transpose(2, 3) * scale
    distance = torch.arange(length)[:, None] - torch.arange(length)[None]
    hidden = (distance < 0) | ((distance >= window) if window else False)
    scores = scores.masked_fill(hidden, -torch.inf)
    logits = torch.cat([scores, sink[None, :, None, None].expand(*scores.shape[:3], 1)], -1)
    return torch.softmax(logits, -1)[..., :-1] @ values, torch.logsumexp(logits, -1)


@pytest.mark.parametrize("window", [None, 1, 5, 100])
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize(("seq_len", "step"), [(19, 8), (16, 8), (7, 64)])
def test_against_autograd(window: int | None, groups: int, seq_len: int, step: int) -> None:
    graph = gqa_sink_bwd(batch=2, heads=4, groups=groups, seq_len=seq_len, dim=6, window=window)
    inputs = random_inputs(graph, seed=groups)
    leaves = {n: inputs[n].clone().requires_grad_() for n in ("Q", "K", "V", "sink")}
    o, lse = plain(**leaves, scale=6**-0.5, window=window)
    o.backward(inputs["dO"])
    have = evaluate(graph, inputs, scan_step=step)
    assert_close(have["O"], o.detach())
    assert_close(have["lse"], lse.detach())
    for name, grad in (("dQ", "Q"), ("dK", "K"), ("dV", "V"), ("dSink", "sink")):
        want = leaves[grad].grad
        assert want is not None
        assert_close(have[name], want)


def test_scale_and_dtype_are_parameters() -> None:
    graph = gqa_sink_bwd(batch=1, heads=2, groups=2, seq_len=9, dim=4, sm_scale=0.3, dtype="bfloat16")
    inputs = random_inputs(graph)
    o, _ = plain(inputs["Q"], inputs["K"], inputs["V"], inputs["sink"], 0.3, None)
    assert_close(evaluate(graph, inputs)["O"], o)
    rounded = evaluate(graph, inputs, "declared", scan_step=4)["O"]
    assert rounded.dtype == torch.bfloat16
    assert_close(rounded.double(), o, 0.02)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"heads": 6, "groups": 4}, "heads=6"), ({"window": 0}, "window=0"), ({"dtype": "fp16"}, "unknown dtype 'fp16'")],
)
def test_refuses(arguments: dict[str, int], message: str) -> None:
    with pytest.raises(FusionError, match=message):
        gqa_sink_bwd(**arguments)  # type: ignore[arg-type]
