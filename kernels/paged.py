"""Decode attention over a paged cache: a block table names the page of the pool that holds each part of a sequence.

S = scale Q K[table]^T where position < length, O = softmax(S) V[table]      `groups` query heads share a K/V head
"""

from __future__ import annotations

from fusion.graph import Graph, StageGraph, cast, contract, exp, gather, largest, maximum, operator, position, total, where
from kernels.checks import MASKED, multiple, softmax_scale

TINY = 1.0e-30  # the least denominator: a sequence of length 0 gives O = 0


@operator
def gqa_decode_paged(
    batch: int = 128,
    heads: int = 32,
    groups: int = 8,
    pages: int = 128,
    pool: int = 16384,
    page_size: int = 64,
    dim: int = 128,
    sm_scale: float | None = None,
    dtype: str = "float16",
) -> StageGraph:
    """Decode with grouped heads: page p of a sequence is row table[b, p] of the pool, `length` positions of all pages count (BHD)."""
    kv_heads = multiple("gqa_decode_paged", "each K/V head serves `groups` query heads", heads=heads, groups=groups)
    scale = softmax_scale("gqa_decode_paged", sm_scale, dim)
    g = Graph("gqa_decode_paged")
    g.dim("b", batch)
    g.dim("n", kv_heads)
    g.dim("g", groups)
    g.dim("p", pages, step=1)
    g.dim("w", pool)
    g.dim("k", page_size)
    g.dim("d", dim)
    Q = g.input("Q", "b (n g) d", dtype)
    K = g.input("K", "w k n d", dtype)
    V = g.input("V", "w k n d", dtype)
    table = g.input("table", "b p", "int32")
    length = g.input("length", "b", "int32")

    with g.scan("p"):
        m = g.state("m", "b n g", init=MASKED)
        l = g.state("l", "b n g", init=0.0)  # noqa: E741
        o = g.state("o", "b n g d", init=0.0)
        with g.vector("fetch"):
            keys = g.let("keys", gather(K, table, "w"))
            values = g.let("values", gather(V, table, "w"))
            left = g.let("left", length - position("p") * page_size)
            valid = g.let("valid", position("k") < left)
        with g.cube("qk"):
            s = g.let("s", contract(Q, keys, over="d"))
        with g.vector("softmax"):
            x = g.let("x", where(valid, s * scale, MASKED))
            m_new = g.let("m_new", maximum(m, largest(x, over="p k")))
            alpha = g.let("alpha", exp(m - m_new))
            p = g.let("prob", where(valid, exp(x - m_new), 0.0))
            l_new = g.let("l_new", l * alpha + total(p, over="p k"))
            p_cast = g.let("p_cast", cast(p, dtype))
        with g.cube("pv"):
            pv = g.let("pv", contract(p_cast, values, over="p k"))
        with g.vector("rescale"):
            o_new = g.let("o_new", o * alpha + pv)
        g.carry(m, m_new)
        g.carry(l, l_new)
        g.carry(o, o_new)
    with g.vector("finish"):
        O = g.let("O", cast(o_new / maximum(l_new, TINY), dtype))  # noqa: E741
    g.output(O, "b (n g) d")
    return g.build()
