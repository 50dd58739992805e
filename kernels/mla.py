"""Multi-head latent attention, decode: one query a sequence, keys split into a latent and a rope part, split over the context.

S = scale (Q KV^T + Q_pe K_pe^T)          the latent rows are keys and values at once
O_s, lse_s = softmax over the keys of split s, times KV
O = sum_s w_s O_s / sum_s w_s             w_s = exp(lse_s - max_s lse_s)
"""

from __future__ import annotations

from fusion.graph import Graph, StageGraph, cast, contract, exp, largest, log, maximum, operator, total
from fusion.graph.expr import Expr
from kernels.checks import MASKED, multiple, softmax_scale


@operator
def mla_decode(
    batch: int = 128,
    heads: int = 128,
    kv_heads: int = 1,
    kv_ctx: int = 8192,
    dim: int = 512,
    pe_dim: int = 64,
    num_split: int = 4,
    sm_scale: float | None = None,
    block_N: int | None = None,
    dtype: str = "float16",
) -> StageGraph:
    """Latent attention decode over a split context, partial results combined (BHD, BSND)."""
    group = multiple("mla_decode", heads=heads, kv_heads=kv_heads)
    per_split = multiple("mla_decode", "every split takes an equal part of the context", kv_ctx=kv_ctx, num_split=num_split)
    scale = softmax_scale("mla_decode", sm_scale, dim + pe_dim)
    g = Graph("mla_decode")
    g.dim("b", batch)
    g.dim("n", kv_heads)
    g.dim("s", num_split)
    g.dim("h", group, tiles=(32, 64, 128))
    g.dim("k", per_split, tiles=(block_N,) if block_N else (64, 128))
    g.dim("d", dim)
    g.dim("r", pe_dim)
    Q = g.input("Q", "b (n h) d", dtype)
    Q_pe = g.input("Q_pe", "b (n h) r", dtype)
    KV = g.input("KV", "b (s k) n d", dtype)
    K_pe = g.input("K_pe", "b (s k) n r", dtype)

    with g.scan("k"):
        m = g.state("m", "b n s h", init=MASKED)
        l = g.state("l", "b n s h", init=0.0)  # noqa: E741
        o = g.state("o", "b n s h d", init=0.0)
        with g.cube("qk"):
            score = g.let("score", contract(Q, KV, over="d") + contract(Q_pe, K_pe, over="r"))
        with g.vector("softmax"):
            x = g.let("x", score * scale)
            m_new = g.let("m_new", maximum(m, largest(x, over="k")))
            alpha = g.let("alpha", exp(m - m_new))
            p = g.let("p", exp(x - m_new))
            l_new = g.let("l_new", l * alpha + total(p, over="k"))
            p_cast = g.let("p_cast", cast(p, dtype))
        with g.cube("pv"):
            pv = g.let("pv", contract(p_cast, KV, over="k"))
        with g.vector("rescale"):
            o_new = g.let("o_new", o * alpha + pv)
        g.carry(m, m_new)
        g.carry(l, l_new)
        g.carry(o, o_new)
    with g.vector("finish_split"):
        o_part = g.let("o_part", o_new / l_new)
        lse_part = g.let("lse_part", m_new + log(l_new))
    O = _combined(g, o_part, lse_part, dtype)  # noqa: E741

    g.output(O, "b (n h) d")
    return g.build()


def _combined(g: Graph, o_part: Expr, lse_part: Expr, dtype: str) -> Expr:
    with g.scan("s"):
        top = g.state("top", "b n h", init=MASKED)
        weight = g.state("weight", "b n h", init=0.0)
        acc = g.state("acc", "b n h d", init=0.0)
        with g.vector("combine"):
            top_new = g.let("top_new", maximum(top, largest(lse_part, over="s")))
            fade = g.let("fade", exp(top - top_new))
            w = g.let("w", exp(lse_part - top_new))
            weight_new = g.let("weight_new", weight * fade + total(w, over="s"))
            acc_new = g.let("acc_new", acc * fade + total(o_part * w, over="s"))
        g.carry(top, top_new)
        g.carry(weight, weight_new)
        g.carry(acc, acc_new)
    with g.vector("finish"):
        return g.let("O", cast(acc_new / weight_new, dtype))
