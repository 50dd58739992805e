"""Attention with sinks, forward and backward: grouped K/V heads, causal, optional sliding window.

P = exp(scale Q K^T - lse) where masked in, lse = log(exp(sink) + sum_k exp(scale Q K^T))
O = P V        dV = P^T dO        dP = dO V^T        dS = scale P (dP - Delta),  Delta = sum_d O dO
dQ = dS K      dK = dS^T Q        dSink = -sum exp(sink - lse) Delta
"""

from __future__ import annotations

from fusion.graph import Graph, StageGraph, cast, contract, exp, largest, log, maximum, operator, total, where
from kernels.checks import MASKED, at_least, multiple, softmax_scale


@operator
def gqa_sink_bwd(
    batch: int = 1,
    heads: int = 64,
    groups: int = 8,
    seq_len: int = 4096,
    dim: int = 128,
    window: int | None = None,
    sm_scale: float | None = None,
    block_M: int | None = None,
    block_N: int | None = None,
    dtype: str = "float16",
) -> StageGraph:
    """Grouped-query attention with sinks, forward and backward (BHSD)."""
    kv_heads = multiple("gqa_sink_bwd", "each K/V head serves `groups` heads", heads=heads, groups=groups)
    at_least("gqa_sink_bwd", 1, batch=batch, heads=heads, seq_len=seq_len, dim=dim, block_M=block_M, block_N=block_N)
    at_least("gqa_sink_bwd", 1, "a window holds at least the position itself; none for no window", window=window)
    scale = softmax_scale("gqa_sink_bwd", sm_scale, dim)
    g = Graph("gqa_sink_bwd")
    g.dim("b", batch)
    g.dim("n", kv_heads)
    g.dim("g", groups)
    q = g.dim("q", seq_len, tiles=(block_M,) if block_M else (64, 128))
    k = g.dim("k", seq_len, tiles=(block_N,) if block_N else (64, 128))
    g.dim("d", dim)
    Q = g.input("Q", "b (n g) q d", dtype)
    K = g.input("K", "b n k d", dtype)
    V = g.input("V", "b n k d", dtype)
    sink = g.input("sink", "(n g)", dtype)
    dO = g.input("dO", "b (n g) q d", dtype, after="O")
    seen = k <= q if window is None else (k <= q) & (q - k < window)

    with g.scan("k"):
        m = g.state("m", "b n g q", init=MASKED)
        l = g.state("l", "b n g q", init=0.0)  # noqa: E741
        o = g.state("o", "b n g q d", init=0.0)
        with g.cube("fwd_qk"):
            fs = g.let("fs", contract(Q, K, over="d"))
        with g.vector("fwd_softmax"):
            fx = g.let("fx", where(seen, fs * scale, MASKED))
            m_new = g.let("m_new", maximum(m, largest(fx, over="k")))
            alpha = g.let("alpha", exp(m - m_new))
            fp = g.let("fp", exp(fx - m_new))
            l_new = g.let("l_new", l * alpha + total(fp, over="k"))
            fp_cast = g.let("fp_cast", cast(fp, dtype))
        with g.cube("fwd_pv"):
            pv = g.let("pv", contract(fp_cast, V, over="k"))
        with g.vector("fwd_rescale"):
            o_new = g.let("o_new", o * alpha + pv)
        g.carry(m, m_new)
        g.carry(l, l_new)
        g.carry(o, o_new)
    with g.vector("fwd_finish"):
        sink_f = g.let("sink_f", cast(sink, "float32"))
        m_all = g.let("m_all", maximum(m_new, sink_f))
        beta = g.let("beta", exp(m_new - m_all))
        l_all = g.let("l_all", l_new * beta + exp(sink_f - m_all))
        O = g.let("O", cast(o_new * (beta / l_all), dtype))  # noqa: E741
        lse = g.let("lse", m_all + log(l_all))

    with g.vector("preprocess"):
        delta = g.let("delta", total(cast(O, "float32") * cast(dO, "float32"), over="d"))
    with g.vector("dsink"):
        dsink = g.let("dsink_acc", total(exp(cast(sink, "float32") - lse) * delta * -1.0, over="b q"))
    with g.cube("qk"):
        s = g.let("s", contract(Q, K, over="d"))
    with g.vector("softmax"):
        p = g.let("p", where(seen, exp(s * scale - lse), 0.0))
        p_cast = g.let("p_cast", cast(p, dtype))
    with g.cube("dv"):
        dv = g.let("dv_acc", contract(p_cast, dO, over="g q"))
    with g.cube("dp"):
        dp = g.let("dp", contract(dO, V, over="d"))
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

    with g.vector("cast_dsink"):
        dSink = g.let("dSink", cast(dsink, dtype))

    g.output(O, "b (n g) q d")
    g.output(lse, "b (n g) q")
    g.output(dQ, "b (n g) q d")
    g.output(dK, "b n k d")
    g.output(dV, "b n k d")
    g.output(dSink, "(n g)")
    return g.build()
