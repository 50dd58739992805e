"""Attention without sinks: multi-head or grouped K/V heads, causal or not, optional sliding window.

S = scale Q K^T where masked in, lse = log sum_k exp(S), P = exp(S - lse), O = P V
dV = P^T dO, dP = dO V^T, dS = scale P (dP - Delta) with Delta = sum_e O dO, dQ = dS K, dK = dS^T Q
"""

from __future__ import annotations

from fusion.graph import Graph, StageGraph, cast, contract, exp, largest, log, maximum, operator, total, where
from fusion.graph.expr import Condition, Expr, Index
from kernels.checks import MASKED, at_least, multiple, softmax_scale


def _seen(q: Index, k: Index, causal: bool, window: int | None, offset: int) -> Condition | None:
    """Keys that a query sees: up to its own position (the last query stands at the last key), at most `window` of them."""
    seen = Condition()
    if causal:
        seen &= k <= q + offset
    if window is not None:
        seen &= q + offset - k < window
    return seen if seen.terms else None


def _masked(seen: Condition | None, x: Expr, otherwise: float) -> Expr:
    return x if seen is None else where(seen, x, otherwise)


@operator
def attention_fwd(
    batch: int = 8,
    heads: int = 64,
    groups: int = 1,
    seq_len: int = 2048,
    kv_len: int | None = None,
    dim: int = 128,
    causal: bool = True,
    window: int | None = None,
    sm_scale: float | None = None,
    block_M: int | None = None,
    block_N: int | None = None,
    dtype: str = "float16",
) -> StageGraph:
    """Flash attention forward with log-sum-exp: `groups` query heads share a K/V head (BHSD)."""
    keys = seq_len if kv_len is None else kv_len
    kv_heads = multiple("attention_fwd", "each K/V head serves `groups` query heads", heads=heads, groups=groups)
    at_least("attention_fwd", 1, window=window)
    if causal or window is not None:
        at_least("attention_fwd", seq_len, "every query needs a key: use kv_len >= seq_len", kv_len=keys)
    scale = softmax_scale("attention_fwd", sm_scale, dim)
    g = Graph("attention_fwd")
    g.dim("b", batch)
    g.dim("n", kv_heads)
    g.dim("g", groups)
    q = g.dim("q", seq_len, tiles=(block_M,) if block_M else (64, 128))
    k = g.dim("k", keys, tiles=(block_N,) if block_N else (64, 128, 256))
    g.dim("d", dim)
    Q = g.input("Q", "b (n g) q d", dtype)
    K = g.input("K", "b n k d", dtype)
    V = g.input("V", "b n k d", dtype)
    seen = _seen(q, k, causal, window, keys - seq_len)

    with g.scan("k"):
        m = g.state("m", "b n g q", init=MASKED)
        l = g.state("l", "b n g q", init=0.0)  # noqa: E741
        o = g.state("o", "b n g q d", init=0.0)
        with g.cube("qk"):
            s = g.let("s", contract(Q, K, over="d"))
        with g.vector("softmax"):
            x = g.let("x", _masked(seen, s * scale, MASKED))
            m_new = g.let("m_new", maximum(m, largest(x, over="k")))
            alpha = g.let("alpha", exp(m - m_new))
            p = g.let("p", exp(x - m_new))
            l_new = g.let("l_new", l * alpha + total(p, over="k"))
            p_cast = g.let("p_cast", cast(p, dtype))
        with g.cube("pv"):
            pv = g.let("pv", contract(p_cast, V, over="k"))
        with g.vector("rescale"):
            o_new = g.let("o_new", o * alpha + pv)
        g.carry(m, m_new)
        g.carry(l, l_new)
        g.carry(o, o_new)
    with g.vector("finish"):
        O = g.let("O", cast(o_new / l_new, dtype))  # noqa: E741
        lse = g.let("lse", m_new + log(l_new))

    g.output(O, "b (n g) q d")
    g.output(lse, "b (n g) q")
    return g.build()


@operator
def mha_bwd(
    batch: int = 8,
    heads: int = 32,
    groups: int = 1,
    seq_len: int = 1024,
    dim: int = 128,
    dim_v: int | None = None,
    causal: bool = True,
    window: int | None = None,
    sm_scale: float | None = None,
    block_M: int | None = None,
    block_N: int | None = None,
    dtype: str = "float16",
) -> StageGraph:
    """Attention backward from the forward's O and log-sum-exp: dQ, dK and dV (BHSD)."""
    kv_heads = multiple("mha_bwd", "each K/V head serves `groups` query heads", heads=heads, groups=groups)
    at_least("mha_bwd", 1, window=window)
    scale = softmax_scale("mha_bwd", sm_scale, dim)
    g = Graph("mha_bwd")
    g.dim("b", batch)
    g.dim("n", kv_heads)
    g.dim("g", groups)
    q = g.dim("q", seq_len, tiles=(block_M,) if block_M else (64, 128))
    k = g.dim("k", seq_len, tiles=(block_N,) if block_N else (64, 128))
    g.dim("d", dim)
    g.dim("e", dim_v or dim)
    Q = g.input("Q", "b (n g) q d", dtype)
    K = g.input("K", "b n k d", dtype)
    V = g.input("V", "b n k e", dtype)
    O = g.input("O", "b (n g) q e", dtype)  # noqa: E741
    lse = g.input("lse", "b (n g) q", "float32")
    dO = g.input("dO", "b (n g) q e", dtype)
    seen = _seen(q, k, causal, window, 0)

    with g.vector("preprocess"):
        delta = g.let("delta", total(cast(O, "float32") * cast(dO, "float32"), over="e"))
    with g.cube("qk"):
        s = g.let("s", contract(Q, K, over="d"))
    with g.vector("softmax"):
        p = g.let("p", _masked(seen, exp(s * scale - lse), 0.0))
        p_cast = g.let("p_cast", cast(p, dtype))
    with g.cube("dv"):
        dv = g.let("dv_acc", contract(p_cast, dO, over="g q"))
    with g.cube("dp"):
        dp = g.let("dp", contract(dO, V, over="e"))
    with g.vector("ds"):
        ds = g.let("ds_cast", cast(cast(p_cast, "float32") * (dp - delta) * scale, dtype))
    with g.cube("dk"):
        dk = g.let("dk_acc", contract(ds, Q, over="g q"))
    with g.cube("dq"):
        dq = g.let("dq_acc", contract(ds, K, over="k"))
    with g.vector("cast_dq"):
        dQ = g.let("dQ", cast(dq, dtype))
    with g.vector("cast_dk"):
        dK = g.let("dK", cast(dk, dtype))
    with g.vector("cast_dv"):
        dV = g.let("dV", cast(dv, dtype))

    g.output(dQ, "b (n g) q d")
    g.output(dK, "b n k d")
    g.output(dV, "b n k e")
    return g.build()
