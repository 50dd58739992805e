"""Normalisation of rows on the Vector unit.

rms_norm:   y = w x / sqrt(mean x^2 + eps)
layer_norm: y = w (x - mean x) / sqrt(mean (x - mean x)^2 + eps) + bias
"""

from __future__ import annotations

from fusion.errors import FusionError
from fusion.graph import Graph, StageGraph, cast, operator, rsqrt, total


def _check_eps(name: str, eps: float) -> None:
    if eps < 0:
        raise FusionError(f"eps={eps} is negative", where=name, remedy="use a small value of 0 or more, like 1e-6")


@operator
def rms_norm(tokens: int = 4096, dim: int = 4096, eps: float = 1e-6, dtype: str = "float16") -> StageGraph:
    """Root-mean-square normalisation of each row, times a weight."""
    _check_eps("rms_norm", eps)
    g = Graph("rms_norm")
    g.dim("t", tokens)
    g.dim("d", dim)
    X = g.input("X", "t d", dtype)
    weight = g.input("weight", "d", dtype)
    with g.vector("normalise"):
        x = g.let("x", cast(X, "float32"))
        r = g.let("r", rsqrt(total(x * x, over="d") / dim + eps))
        Y = g.let("Y", cast(x * r * cast(weight, "float32"), dtype))
    g.output(Y, "t d")
    return g.build()


@operator
def layer_norm(tokens: int = 4096, dim: int = 4096, eps: float = 1e-5, dtype: str = "float16") -> StageGraph:
    """Layer normalisation of each row, with weight and bias."""
    _check_eps("layer_norm", eps)
    g = Graph("layer_norm")
    g.dim("t", tokens)
    g.dim("d", dim)
    X = g.input("X", "t d", dtype)
    weight = g.input("weight", "d", dtype)
    bias = g.input("bias", "d", dtype)
    with g.vector("normalise"):
        x = g.let("x", cast(X, "float32"))
        centred = g.let("centred", x - total(x, over="d") / dim)
        r = g.let("r", rsqrt(total(centred * centred, over="d") / dim + eps))
        Y = g.let("Y", cast(centred * r * cast(weight, "float32") + cast(bias, "float32"), dtype))
    g.output(Y, "t d")
    return g.build()
