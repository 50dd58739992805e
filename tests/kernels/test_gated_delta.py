"""Gated delta by chunks: each piece against a loop, and all of them together against the recurrence position by position."""

from __future__ import annotations

import pytest
import torch

from fusion.errors import FusionError
from fusion.graph.evaluate import evaluate
from kernels.gated_delta import gdn_chunk_h, gdn_chunk_o, gdn_kkt, gdn_wy_fast
from tests.inputs import assert_close, random_inputs

B, S, H, DK, DV, CHUNK = 2, 12, 2, 3, 5, 4
SHAPE = {"batch": B, "seq_len": S, "heads": H, "chunk_size": CHUNK}


def chunks(x: torch.Tensor) -> torch.Tensor:
    """[b s h ...] as [b c h t ...]."""
    return x.reshape(B, S // CHUNK, CHUNK, *x.shape[2:]).transpose(2, 3)


def flat(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(2, 3).reshape(B, S, *x.shape[2:3], *x.shape[4:])


@pytest.mark.parametrize("initial_state", [False, True])
def test_chunk_h(initial_state: bool) -> None:
    graph = gdn_chunk_h(**SHAPE, dim_k=DK, dim_v=DV, initial_state=initial_state)
    inputs = random_inputs(graph)
    K, W, U, G = (chunks(inputs[n]) for n in "KWUG")
    h = inputs["h0"] if initial_state else torch.zeros(B, H, DK, DV, dtype=torch.float64)
    states, corrected = [], []
    for c in range(S // CHUNK):
        states.append(h)
        new = U[:, c] - W[:, c] @ h
        corrected.append(new)
        last = G[:, c, :, -1:]
        h = h * last.exp()[..., None] + K[:, c].transpose(2, 3) @ (new * (last - G[:, c]).exp()[..., None])
    have = evaluate(graph, inputs, scan_step=2)
    assert_close(have["H"], torch.stack(states, 1))
    assert_close(have["V_new"], flat(torch.stack(corrected, 1)))
    assert_close(have["final_state"], h)


def test_chunk_o() -> None:
    graph = gdn_chunk_o(**SHAPE, dim_k=DK, dim_v=DV)
    inputs = random_inputs(graph)
    Q, K, V, G = (chunks(inputs[n]) for n in "QKVG")
    decay = (G[..., :, None] - G[..., None, :]).exp()
    inside = torch.tril(Q @ K.transpose(3, 4) * decay) @ V
    want = (Q @ inputs["H"] * G.exp()[..., None] + inside) * DK**-0.5
    assert_close(evaluate(graph, inputs)["O"], flat(want))


def test_kkt() -> None:
    graph = gdn_kkt(**SHAPE, dim_k=DK)
    inputs = random_inputs(graph)
    K, beta, G = (chunks(inputs[n]) for n in ("K", "beta", "G"))
    want = torch.tril(beta[..., None] * (K @ K.transpose(3, 4)) * (G[..., :, None] - G[..., None, :]).exp(), -1)
    assert_close(evaluate(graph, inputs)["A"], flat(want))


def test_wy_fast() -> None:
    graph = gdn_wy_fast(**SHAPE, dim_k=DK, dim_v=DV)
    inputs = random_inputs(graph)
    K, V, beta, G, A = (chunks(inputs[n]) for n in ("K", "V", "beta", "G", "A"))
    have = evaluate(graph, inputs)
    assert_close(have["U"], flat(A @ (V * beta[..., None])))
    assert_close(have["W"], flat(A @ (K * (beta * G.exp())[..., None])))


def test_all_pieces_are_the_recurrence() -> None:
    """h_t = exp(g_t) (1 - beta_t k_t k_t^T) h_(t-1) + beta_t k_t v_t^T,  o_t = scale h_t^T q_t."""
    generator = torch.Generator().manual_seed(7)
    q, k, v = (torch.randn(B, S, H, d, generator=generator, dtype=torch.float64) for d in (DK, DK, DV))
    beta = torch.rand(B, S, H, generator=generator, dtype=torch.float64)
    g = -torch.rand(B, S, H, generator=generator, dtype=torch.float64)
    G = flat(chunks(g).cumsum(3))

    A = evaluate(gdn_kkt(**SHAPE, dim_k=DK), {"K": k, "beta": beta, "G": G})["A"]
    inverse = flat(torch.linalg.inv(torch.eye(CHUNK, dtype=torch.float64) + chunks(A)))
    wu = evaluate(gdn_wy_fast(**SHAPE, dim_k=DK, dim_v=DV), {"K": k, "V": v, "beta": beta, "G": G, "A": inverse})
    states = evaluate(gdn_chunk_h(**SHAPE, dim_k=DK, dim_v=DV), {"K": k, "W": wu["W"], "U": wu["U"], "G": G})
    have = evaluate(gdn_chunk_o(**SHAPE, dim_k=DK, dim_v=DV), {"Q": q, "K": k, "V": states["V_new"], "H": states["H"], "G": G})["O"]

    h = torch.zeros(B, H, DK, DV, dtype=torch.float64)
    for t in range(S):
        h = h * g[:, t].exp()[..., None, None]
        seen = torch.einsum("bhx,bhxv->bhv", k[:, t], h)
        h = h + torch.einsum("bhx,bhv->bhxv", k[:, t], beta[:, t, :, None] * (v[:, t] - seen))
        assert_close(have[:, t], torch.einsum("bhx,bhxv->bhv", q[:, t], h) * DK**-0.5)
    assert_close(states["final_state"], h)


def test_strong_decay_stays_finite() -> None:
    graph = gdn_kkt(**SHAPE, dim_k=DK)
    inputs = random_inputs(graph)
    inputs["G"] = inputs["G"].abs().cumsum(1) * -1000
    assert torch.isfinite(evaluate(graph, inputs)["A"]).all()


@pytest.mark.parametrize("operator", [gdn_chunk_h, gdn_chunk_o, gdn_kkt, gdn_wy_fast])
def test_refuses_a_part_of_a_chunk(operator) -> None:
    with pytest.raises(FusionError, match="seq_len=100 is no multiple of chunk_size=64") as error:
        operator(seq_len=100)
    assert "use 64 or 128" in str(error.value)
