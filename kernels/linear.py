"""Matrix products with something around them: C = A B, relu(A B + bias), relu(X W1) W2."""

from __future__ import annotations

from fusion.graph import Graph, StageGraph, cast, contract, operator, relu


@operator
def gemm(M: int = 4096, N: int = 4096, K: int = 4096, dtype: str = "float16") -> StageGraph:
    """C = A B, accumulated in float32."""
    g = Graph("gemm")
    g.dim("m", M)
    g.dim("n", N)
    g.dim("k", K)
    A = g.input("A", "m k", dtype)
    B = g.input("B", "k n", dtype)
    with g.cube("product"):
        acc = g.let("acc", contract(A, B, over="k"))
    with g.vector("round"):
        C = g.let("C", cast(acc, dtype))
    g.output(C, "m n")
    return g.build()


@operator
def gemm_bias_relu(M: int = 4096, N: int = 4096, K: int = 4096, dtype: str = "float16") -> StageGraph:
    """C = relu(A B + bias): a product with an epilogue on the Vector unit."""
    g = Graph("gemm_bias_relu")
    g.dim("m", M)
    g.dim("n", N)
    g.dim("k", K)
    A = g.input("A", "m k", dtype)
    B = g.input("B", "k n", dtype)
    bias = g.input("bias", "n", "float32")
    with g.cube("product"):
        acc = g.let("acc", contract(A, B, over="k"))
    with g.vector("epilogue"):
        C = g.let("C", cast(relu(acc + bias), dtype))
    g.output(C, "m n")
    return g.build()


@operator
def mlp(tokens: int = 4096, dim: int = 1024, hidden: int = 4096, dtype: str = "float16") -> StageGraph:
    """Y = relu(X W1) W2: two products with an activation between them."""
    g = Graph("mlp")
    g.dim("t", tokens)
    g.dim("d", dim)
    g.dim("h", hidden)
    g.dim("e", dim)
    X = g.input("X", "t d", dtype)
    W1 = g.input("W1", "d h", dtype)
    W2 = g.input("W2", "h e", dtype)
    with g.cube("up"):
        u = g.let("u", contract(X, W1, over="d"))
    with g.vector("activate"):
        a = g.let("a", cast(relu(u), dtype))
    with g.cube("down"):
        y = g.let("y", contract(a, W2, over="h"))
    with g.vector("round"):
        Y = g.let("Y", cast(y, dtype))
    g.output(Y, "t e")
    return g.build()
