"""Sparse latent attention forward: every query attends the rows of KV that an index list names.

rows = KV[indices]      scale (q_lat rows_lat^T + q_rope rows_rope^T) where 0 <= index <= position of the query, index < kv_len
O = softmax(S) rows_lat,  lse = log sum_t exp(S)      a query without any valid index gives O = 0
"""

from __future__ import annotations

from fusion.graph import (
    Graph,
    StageGraph,
    cast,
    contract,
    exp,
    gather,
    largest,
    log,
    maximum,
    minimum,
    operator,
    part,
    position,
    total,
    where,
)
from kernels.checks import MASKED, at_least, at_most, multiple, softmax_scale

TINY = 1.0e-30  # the least denominator: keeps a query without keys at O = 0


@operator
def sparse_mla_fwd(
    batch: int = 1,
    seq_len: int = 4096,
    kv_len: int = 8192,
    heads: int = 128,
    kv_heads: int = 1,
    dim: int = 512,
    tail_dim: int = 64,
    topk: int = 2048,
    q_start: int = 0,
    sm_scale: float | None = None,
    block_I: int | None = None,
    dtype: str = "bfloat16",
) -> StageGraph:
    """Sparse latent attention forward over gathered rows, causal in the gathered positions (BSHD); query i stands at q_start + i."""
    group = multiple("sparse_mla_fwd", heads=heads, kv_heads=kv_heads)
    at_most("sparse_mla_fwd", kv_len, "at most every row of KV can be listed", topk=topk)
    at_least("sparse_mla_fwd", 0, q_start=q_start)
    scale = softmax_scale("sparse_mla_fwd", sm_scale, dim + tail_dim)
    g = Graph("sparse_mla_fwd")
    g.dim("b", batch)
    g.dim("q", seq_len)
    g.dim("n", kv_heads)
    g.dim("h", group, tiles=(32, 64, 128))
    g.dim("k", kv_len)
    g.dim("t", topk, tiles=(block_I,) if block_I else (64, 128))
    g.dim("e", dim + tail_dim)
    g.dim("d", dim)
    g.dim("r", tail_dim)
    Q = g.input("Q", "b q (n h) e", dtype)
    KV = g.input("KV", "b k n e", dtype)
    indices = g.input("indices", "b q n t", "int32")

    with g.vector("split_q"):
        q_lat = g.let("q_lat", part(Q, "e", "d"))
        q_rope = g.let("q_rope", part(Q, "e", "r", start=dim))
    with g.scan("t"):
        m = g.state("m", "b q n h", init=MASKED)
        l = g.state("l", "b q n h", init=0.0)  # noqa: E741
        o = g.state("o", "b q n h d", init=0.0)
        with g.vector("gather_rows"):
            rows = g.let("rows", gather(KV, indices, "k"))
            rows_lat = g.let("rows_lat", part(rows, "e", "d"))
            rows_rope = g.let("rows_rope", part(rows, "e", "r", start=dim))
            last = minimum(position("q") + q_start, kv_len - 1)
            valid = g.let("valid", where(indices >= 0, last - indices, -1) >= 0)
        with g.cube("qk"):
            s = g.let("s", contract(q_lat, rows_lat, over="d") + contract(q_rope, rows_rope, over="r"))
        with g.vector("softmax"):
            x = g.let("x", where(valid, s * scale, MASKED))
            m_new = g.let("m_new", maximum(m, largest(x, over="t")))
            alpha = g.let("alpha", exp(m - m_new))
            p = g.let("p", where(valid, exp(x - m_new), 0.0))
            l_new = g.let("l_new", l * alpha + total(p, over="t"))
            p_cast = g.let("p_cast", cast(p, dtype))
        with g.cube("pv"):
            pv = g.let("pv", contract(p_cast, rows_lat, over="t"))
        with g.vector("rescale"):
            o_new = g.let("o_new", o * alpha + pv)
        g.carry(m, m_new)
        g.carry(l, l_new)
        g.carry(o, o_new)
    with g.vector("finish"):
        sum_p = g.let("sum_p", maximum(l_new, TINY))
        O = g.let("O", cast(o_new / sum_p, dtype))  # noqa: E741
        lse = g.let("lse", m_new + log(sum_p))

    g.output(O, "b q (n h) d")
    g.output(lse, "b q (n h)")
    return g.build()
