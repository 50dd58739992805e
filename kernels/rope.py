"""Rotary position embedding of heads, halves of a head as the pairs.

y1 = x1 cos - x2 sin, y2 = x2 cos + x1 sin      x = (x1, x2) along the head; cos and sin by position
"""

from __future__ import annotations

from fusion.graph import Graph, StageGraph, cast, operator, part
from kernels.checks import multiple


@operator
def rope(batch: int = 4, heads: int = 32, seq_len: int = 4096, dim: int = 128, dtype: str = "float16") -> StageGraph:
    """Both halves of each head rotated by the angles of its position (BSHD); the halves come as two tensors."""
    half = multiple("rope", "a head is rotated in pairs", dim=dim, parts=2)
    g = Graph("rope")
    g.dim("b", batch)
    g.dim("h", heads)
    g.dim("s", seq_len)
    g.dim("e", dim)
    g.dim("d", half)
    X = g.input("X", "b s h e", dtype)
    cos = g.input("cos", "s d", "float32")
    sin = g.input("sin", "s d", "float32")
    with g.vector("rotate"):
        x1 = g.let("x1", cast(part(X, "e", "d"), "float32"))
        x2 = g.let("x2", cast(part(X, "e", "d", start=half), "float32"))
        Y1 = g.let("Y1", cast(x1 * cos - x2 * sin, dtype))
        Y2 = g.let("Y2", cast(x2 * cos + x1 * sin, dtype))
    g.output(Y1, "b s h d")
    g.output(Y2, "b s h d")
    return g.build()
