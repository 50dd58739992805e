"""Latent attention, dense decode and sparse forward, against plain softmax in float64."""

from __future__ import annotations

import pytest
import torch

from fusion.errors import FusionError
from fusion.graph.evaluate import evaluate
from kernels.mla import mla_decode
from kernels.sparse_mla import sparse_mla_fwd
from tests.inputs import assert_close, random_inputs


@pytest.mark.parametrize("num_split", [1, 2, 3])
@pytest.mark.parametrize("kv_heads", [1, 2])
@pytest.mark.parametrize("step", [None, 3])
def test_decode(num_split: int, kv_heads: int, step: int | None) -> None:
    graph = mla_decode(batch=2, heads=4, kv_heads=kv_heads, kv_ctx=12, dim=6, pe_dim=3, num_split=num_split)
    inputs = random_inputs(graph)
    q = torch.cat([inputs["Q"], inputs["Q_pe"]], -1)
    keys = torch.cat([inputs["KV"], inputs["K_pe"]], -1).repeat_interleave(4 // kv_heads, 2)
    p = torch.softmax(torch.einsum("bhe,bkhe->bhk", q, keys) / 3, -1)
    want = torch.einsum("bhk,bkhd->bhd", p, inputs["KV"].repeat_interleave(4 // kv_heads, 2))
    assert_close(evaluate(graph, inputs, scan_step=step)["O"], want)


def sparse_reference(Q: torch.Tensor, KV: torch.Tensor, indices: torch.Tensor, dim: int, q_start: int):
    """One query and head at a time, over the keys that count."""
    batch, length, heads, width = Q.shape
    kv_heads = KV.shape[2]
    o = torch.zeros(batch, length, heads, dim, dtype=Q.dtype)
    lse = torch.full((batch, length, heads), -torch.inf, dtype=Q.dtype)
    for b in range(batch):
        for i in range(length):
            for h in range(heads):
                n = h * kv_heads // heads
                keep = [j for j in indices[b, i, n].tolist() if 0 <= j <= i + q_start and j < KV.shape[1]]
                if keep:
                    rows = KV[b, keep, n]
                    scores = rows @ Q[b, i, h] * width**-0.5
                    o[b, i, h] = torch.softmax(scores, 0) @ rows[:, :dim]
                    lse[b, i, h] = torch.logsumexp(scores, 0)
    return o, lse


@pytest.mark.parametrize("q_start", [0, 6])
@pytest.mark.parametrize("kv_heads", [1, 2])
@pytest.mark.parametrize("step", [None, 1, 3])
def test_sparse(q_start: int, kv_heads: int, step: int | None) -> None:
    graph = sparse_mla_fwd(
        batch=2, seq_len=5, kv_len=11, heads=4, kv_heads=kv_heads, dim=6, tail_dim=3, topk=7, q_start=q_start, dtype="float16"
    )
    inputs = random_inputs(graph)
    generator = torch.Generator().manual_seed(3)
    indices = torch.randint(-1, 12, (2, 5, kv_heads, 7), generator=generator)
    indices[0, 4] = -1  # a query that sees nothing
    o, lse = sparse_reference(inputs["Q"], inputs["KV"], indices, 6, q_start)
    have = evaluate(graph, inputs | {"indices": indices}, scan_step=step)
    seen = lse > -torch.inf
    assert not seen.all() and seen.any()
    assert_close(have["O"], o)
    assert_close(have["lse"][seen], lse[seen])
    assert (have["lse"][~seen] < -1e29).all()


def test_rows_out_of_reach_do_not_count_as_zero_rows() -> None:
    """An index of kv_len (no such row) must not add a row of zeros, even where the position would allow it."""
    graph = sparse_mla_fwd(batch=1, seq_len=2, kv_len=4, heads=1, dim=2, tail_dim=2, topk=2, q_start=8)
    inputs = random_inputs(graph)
    indices = torch.tensor([[[[1, 4]], [[1, 9]]]])
    have = evaluate(graph, inputs | {"indices": indices})
    assert_close(have["O"], inputs["KV"][:, 1, :, :2].expand(1, 2, 2)[:, :, None])


@pytest.mark.parametrize(
    ("operator", "arguments", "message"),
    [
        (mla_decode, {"kv_ctx": 10, "num_split": 4}, "kv_ctx=10 is no multiple of num_split=4"),
        (mla_decode, {"num_split": 0}, "num_split=0"),
        (sparse_mla_fwd, {"topk": 64, "kv_len": 32}, "topk=64 is more than 32"),
        (sparse_mla_fwd, {"q_start": -1}, "q_start=-1 is less than 0"),
        (sparse_mla_fwd, {"kv_heads": 3}, "heads=128 is no multiple of kv_heads=3"),
    ],
)
def test_refuses(operator, arguments: dict[str, int], message: str) -> None:
    with pytest.raises(FusionError, match=message):
        operator(**arguments)
