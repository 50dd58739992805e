"""Small graphs that several tests of the language start from."""

from __future__ import annotations

from fusion.graph import Graph, StageGraph, cast, contract, exp, largest, maximum, total, where


def product(m: int = 3, n: int = 4, k: int = 5) -> StageGraph:
    """C = half(A B)."""
    g = Graph("product")
    for name, size in (("m", m), ("n", n), ("k", k)):
        g.dim(name, size)
    A = g.input("A", "m k", "float16")
    B = g.input("B", "k n", "float16")
    with g.cube("mul"):
        acc = g.let("acc", contract(A, B, over="k"))
    with g.vector("round"):
        C = g.let("C", cast(acc, "float16"))
    g.output(C, "m n")
    return g.build()


def softmax_sum(q: int = 4, k: int = 7) -> StageGraph:
    """Online log-sum-exp parts of masked scores: a scan along k with two states."""
    g = Graph("softmax_sum")
    qi, ki = g.dim("q", q), g.dim("k", k)
    X = g.input("X", "q k", "float32")
    with g.scan("k"):
        m = g.state("m", "q", init=-1e30)
        s = g.state("s", "q", init=0.0)
        with g.vector("step"):
            x = g.let("x", where(ki <= qi + 2, X, -1e30))
            m_new = g.let("m_new", maximum(m, largest(x, over="k")))
            s_new = g.let("s_new", s * exp(m - m_new) + total(exp(x - m_new), over="k"))
        g.carry(m, m_new)
        g.carry(s, s_new)
    with g.vector("finish"):
        out = g.let("out", m_new + s_new)
    g.output(out)
    g.output(s_new)
    return g.build()
