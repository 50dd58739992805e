"""Losses over a vocabulary.

cross_entropy: lse = log sum_v exp(x[t v]), loss[t] = lse[t] - x[t label[t]]; 0 where the label is negative
"""

from __future__ import annotations

from fusion.graph import Graph, StageGraph, absolute, cast, exp, largest, log, maximum, minimum, operator, position, total, where
from kernels.checks import MASKED


@operator
def cross_entropy(tokens: int = 4096, vocab: int = 32000, block_V: int | None = None, dtype: str = "float16") -> StageGraph:
    """Cross entropy of each row with its label, and the log-sum-exp that the backward needs, in one walk over the vocabulary."""
    g = Graph("cross_entropy")
    g.dim("t", tokens)
    g.dim("v", vocab, tiles=(block_V,) if block_V else (1024, 2048))
    logits = g.input("logits", "t v", dtype)
    label = g.input("label", "t", "int32")

    with g.scan("v"):
        m = g.state("m", "t", init=MASKED)
        l = g.state("l", "t", init=0.0)  # noqa: E741
        picked = g.state("picked", "t", init=0.0)
        with g.vector("walk"):
            x = g.let("x", cast(logits, "float32"))
            m_new = g.let("m_new", maximum(m, largest(x, over="v")))
            l_new = g.let("l_new", l * exp(m - m_new) + total(exp(x - m_new), over="v"))
            apart = g.let("apart", absolute(cast(position("v"), "float32") - cast(label, "float32")))
            picked_new = g.let("picked_new", picked + total(where(apart < 0.5, x, 0.0), over="v"))
        g.carry(m, m_new)
        g.carry(l, l_new)
        g.carry(picked, picked_new)
    with g.vector("finish"):
        lse = g.let("lse", m_new + log(l_new))
        known = g.let("known", cast(minimum(maximum(label + 1, 0), 1), "float32"))  # 1 where label >= 0
        loss = g.let("loss", (lse - picked_new) * known)

    g.output(loss, "t")
    g.output(lse, "t")
    return g.build()
