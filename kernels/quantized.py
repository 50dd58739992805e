"""Eight-bit integers: rows rounded with a scale of their own, and products of such matrices.

scale[t] = max(max_d |x[t d]|, eps) / 127      q = round(x / scale)
C = (A B^T) scale_a scale_b                    A by rows, B by columns of C
"""

from __future__ import annotations

from fusion.graph import Graph, StageGraph, absolute, cast, contract, largest, maximum, operator

LARGEST = 127.0


@operator
def quantize_tokens(tokens: int = 4096, dim: int = 4096, eps: float = 1e-6, dtype: str = "float16") -> StageGraph:
    """Each row as int8 with a float32 scale."""
    g = Graph("quantize_tokens")
    g.dim("t", tokens)
    g.dim("d", dim)
    X = g.input("X", "t d", dtype)
    with g.vector("quantize"):
        x = g.let("x", cast(X, "float32"))
        scale = g.let("scale", maximum(largest(absolute(x), over="d"), eps) / LARGEST)
        q = g.let("q", cast(x / scale, "int8"))
    g.output(q, "t d")
    g.output(scale, "t")
    return g.build()


@operator
def w8a8_gemm(M: int = 4096, N: int = 4096, K: int = 4096, dtype: str = "float16") -> StageGraph:
    """C = A B^T of int8 matrices, each row of A and of B with its scale."""
    g = Graph("w8a8_gemm")
    g.dim("m", M)
    g.dim("n", N)
    g.dim("k", K)
    A = g.input("A", "m k", "int8")
    B = g.input("B", "n k", "int8")
    scale_a = g.input("scale_a", "m", "float32")
    scale_b = g.input("scale_b", "n", "float32")
    with g.cube("product"):
        acc = g.let("acc", contract(A, B, over="k"))
    with g.vector("rescale"):
        C = g.let("C", cast(cast(acc, "float32") * scale_a * scale_b, dtype))
    g.output(C, "m n")
    return g.build()
