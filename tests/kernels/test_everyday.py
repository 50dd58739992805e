"""Quantization, the loss, rotary embedding and chunk states against torch, loops and autograd."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from fusion.graph.evaluate import evaluate
from kernels.loss import cross_entropy
from kernels.quantized import quantize_tokens, w8a8_gemm
from kernels.rope import rope
from kernels.state_space import ssd_chunk_state
from tests.inputs import assert_close, random_inputs


def test_quantize_tokens() -> None:
    graph = quantize_tokens(tokens=5, dim=33)
    x = random_inputs(graph)
    x["X"][2] = 0.0
    x["X"][3, :3] = torch.tensor([127.0, 0.5, 1.5])
    x["X"][3, 3:] = -2.5
    found = evaluate(graph, x)
    assert_close(found["scale"], x["X"].abs().amax(1).clamp(min=1e-6) / 127)
    assert found["q"].dtype == torch.int8
    assert found["q"][2].abs().max() == 0
    assert found["q"][3, :4].tolist() == [127, 0, 2, -2], "to the nearest, halves to even"
    assert (found["q"].double() * found["scale"][:, None] - x["X"]).abs().max() <= 0.5 * found["scale"].max() + 1e-12


def test_w8a8_gemm() -> None:
    graph = w8a8_gemm(M=3, N=4, K=200)
    x = random_inputs(graph)
    x |= {n: torch.full(s, v, dtype=torch.int8) for n, s, v in (("A", (3, 200), -128), ("B", (4, 200), 127))}
    x["A"][1] = torch.arange(200) % 5
    want = (x["A"].double() * x["scale_a"][:, None]) @ (x["B"].double() * x["scale_b"][:, None]).T
    assert_close(evaluate(graph, x)["C"], want)


@pytest.mark.parametrize("step", [7, 16, 100])
def test_cross_entropy(step: int) -> None:
    graph = cross_entropy(tokens=6, vocab=100)
    x = random_inputs(graph)
    x["label"] = torch.tensor([0, 99, 50, -100, 3, -1], dtype=torch.int32)
    found = evaluate(graph, x, scan_step=step)
    want = functional.cross_entropy(x["logits"], torch.where(x["label"] < 0, -100, x["label"]).long(), reduction="none")
    assert_close(found["loss"], want)
    assert_close(found["lse"], torch.logsumexp(x["logits"], 1))


def test_rope_turns_each_pair_by_its_angle() -> None:
    graph = rope(batch=2, heads=3, seq_len=5, dim=8)
    x = random_inputs(graph)
    angle = torch.arange(5)[:, None] * torch.tensor([1.0, 0.1, 0.01, 0.001], dtype=torch.float64)
    x |= {"cos": angle.cos(), "sin": angle.sin()}
    turned = torch.complex(x["X"][..., :4], x["X"][..., 4:]) * torch.polar(torch.ones_like(angle), angle)[None, :, None]
    found = evaluate(graph, x)
    assert_close(found["Y1"], turned.real)
    assert_close(found["Y2"], turned.imag)


def test_chunk_states_follow_the_recurrence() -> None:
    """Position by position: the state fades by each position's decay and takes in B x^T."""
    graph = ssd_chunk_state(batch=2, seq_len=12, heads=3, dim=4, state_dim=5, chunk_size=4)
    x = random_inputs(graph)
    decay = -x["A"].abs()  # log decay of every position
    x["A"] = decay.cumsum(-1)
    x["last"] = x["A"][..., -1]
    state, before = torch.zeros(2, 3, 5, 4, dtype=torch.float64), list[torch.Tensor]()
    for i in range(12):
        before += [state] if i % 4 == 0 else []
        state = state * decay[:, :, i // 4, i % 4, None, None].exp() + x["B"][:, i, :, :, None] * x["X"][:, i, :, None, :]
    found = evaluate(graph, x)
    assert_close(found["final"], state)
    assert_close(found["states"], torch.stack(before, 2))
