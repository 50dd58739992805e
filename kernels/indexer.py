"""The indexer of sparse attention: scores every causal key for a query and keeps the positions of the best.

score[q k] = scale sum_h w[q h] relu(Q[q h] . K[k])   where k <= q
indices = positions of the topk largest, -1 where fewer are visible      weight = softmax over the kept scores
"""

from __future__ import annotations

from fusion.graph import Graph, StageGraph, cast, contract, exp, largest, operator, part, relu, topk_index, total, where
from fusion.graph import topk as topk_values
from kernels.checks import MASKED, at_most, softmax_scale


@operator
def indexer_topk(
    batch: int = 1,
    seq_len: int = 2048,
    heads: int = 64,
    dim: int = 128,
    topk: int = 64,
    sm_scale: float | None = None,
    dtype: str = "bfloat16",
) -> StageGraph:
    """Scores of all causal keys summed over heads, the best positions and their softmax (BSHD)."""
    at_most("indexer_topk", seq_len, "at most all keys can be kept", topk=topk)
    scale = softmax_scale("indexer_topk", sm_scale, dim)
    g = Graph("indexer_topk")
    g.dim("b", batch)
    q = g.dim("q", seq_len)
    g.dim("h", heads)
    g.dim("k", seq_len)
    e = g.dim("e", seq_len)  # keys again: a whole row of scores is one tile, of which products take parts
    g.dim("t", topk)
    g.dim("d", dim)
    Q = g.input("Q", "b q h d", dtype)
    K = g.input("K", "b k d", dtype)
    weights = g.input("weights", "b q h", dtype)

    with g.cube("qk"):
        s = g.let("s", contract(Q, K, over="d"))
    with g.vector("weigh"):
        score = g.let("score", total(relu(s) * cast(weights, "float32"), over="h") * scale)
    with g.vector("select"):
        visible = g.let("visible", where(e <= q, part(score, "k", "e"), MASKED))
        best = g.let("best", topk_values(visible, over="e", into="t"))
        at = g.let("at", topk_index(visible, over="e", into="t"))
    with g.vector("finish"):
        found = g.let("found", best >= MASKED / 2)
        indices = g.let("indices", where(found, at, -1.0))
        e = g.let("e", exp(best - largest(best, over="t")))
        scores = g.let("scores", e / total(e, over="t"))

    g.output(indices, "b q t")
    g.output(scores, "b q t")
    return g.build()
