"""State space duality by chunks: a sequence is c chunks of t positions, a matrix state of n by p runs over the chunks.

A: log decays summed within each chunk, last = A at the chunk's end
S[c+1] = exp(last[c]) S[c] + sum_t exp(last - A[t]) B[t] x[t]^T
"""

from __future__ import annotations

from fusion.graph import Graph, StageGraph, cast, contract, exp, expand, operator, total
from kernels.checks import multiple


@operator
def ssd_chunk_state(
    batch: int = 1,
    seq_len: int = 8192,
    heads: int = 64,
    dim: int = 64,
    state_dim: int = 128,
    chunk_size: int = 64,
    dtype: str = "float16",
) -> StageGraph:
    """The state before each chunk and the last one, from inputs x, B and decays (BSHD)."""
    chunks = multiple("ssd_chunk_state", "the sequence is whole chunks", seq_len=seq_len, chunk_size=chunk_size)
    g = Graph("ssd_chunk_state")
    g.dim("b", batch)
    g.dim("h", heads)
    g.dim("c", chunks, step=1)
    g.dim("t", chunk_size, tiles=(chunk_size,))
    g.dim("n", state_dim)
    g.dim("p", dim)
    X = g.input("X", "b (c t) h p", dtype)
    B = g.input("B", "b (c t) h n", dtype)
    A = g.input("A", "b h c t", "float32")
    last = g.input("last", "b h c", "float32")

    with g.scan("c"):
        S = g.state("S", "b h n p", init=0.0)
        with g.vector("decay"):
            decayed = g.let("decayed", cast(cast(X, "float32") * exp(last - A), dtype))
        with g.cube("outer"):
            added = g.let("added", contract(B, decayed, over="t"))
        with g.vector("step"):
            before = g.let("states", cast(expand(S, "b h c n p"), dtype))
            final = g.let("final", total(expand(S, "b h c n p") * exp(last) + added, over="c"))
        g.carry(S, final)

    g.output(before, "b h c n p")
    g.output(final, "b h n p")
    return g.build()
