"""Mixture of experts: which experts work on a token, and with what weight.

p[t e] = exp(x[t e]) / sum_e exp(x[t e])   ids = the topk experts of largest p   weights[t i] = p[t ids[t i]] / sum_i p[t ids[t i]]
"""

from __future__ import annotations

from fusion.graph import Graph, StageGraph, cast, exp, largest, operator, topk_index, total
from fusion.graph import topk as topk_values
from kernels.checks import at_least, at_most


@operator
def moe_gate(tokens: int = 4096, experts: int = 256, topk: int = 8, scale: float = 1.0, dtype: str = "float16") -> StageGraph:
    """Softmax over the experts, the topk of each token with their weights made to sum to `scale`."""
    at_least("moe_gate", 1, topk=topk)
    at_most("moe_gate", experts, "at most all experts can be chosen", topk=topk)
    g = Graph("moe_gate")
    g.dim("t", tokens)
    g.dim("e", experts)
    g.dim("i", topk)
    logits = g.input("logits", "t e", dtype)
    with g.vector("gate"):
        x = g.let("x", cast(logits, "float32"))
        raised = g.let("raised", exp(x - largest(x, over="e")))
        p = g.let("p", raised / total(raised, over="e"))
        best = g.let("best", topk_values(p, over="e", into="i"))
        ids = g.let("ids", topk_index(p, over="e", into="i"))
        weights = g.let("weights", best / total(best, over="i") * scale)
    g.output(weights, "t i")
    g.output(ids, "t i")
    return g.build()
