"""An operator of your own: the gated product silu(X Wg) * (X Wu) of a SwiGLU layer.

    fusion-plan examples/own_operator.py --target 1          one kernel: both products stay on the core
    fusion-plan examples/own_operator.py --target 2          one product apart
    fusion-plan examples/own_operator.py --shape tokens=512 --dtype bfloat16
    fusion-plan show examples/own_operator.py --as mermaid

An operator is a function with typed, defaulted parameters. It declares dims and inputs, writes stages for the Cube unit (contractions)
and the Vector unit (all else) over named dims, and says what leaves. Grids, loops, tiles and workspaces are found by the planner.
Run this file to check the operator against torch.
"""

from __future__ import annotations

from fusion.graph import Graph, StageGraph, cast, contract, operator, sigmoid


@operator
def swiglu(tokens: int = 4096, dim: int = 1024, hidden: int = 2816, dtype: str = "float16") -> StageGraph:
    """Y = silu(X Wg) * (X Wu), silu(g) = g sigmoid(g)."""
    g = Graph("swiglu")
    g.dim("t", tokens)
    g.dim("d", dim)
    g.dim("h", hidden)
    X = g.input("X", "t d", dtype)
    Wg = g.input("Wg", "d h", dtype)
    Wu = g.input("Wu", "d h", dtype)
    with g.cube("gate"):
        gate = g.let("gate_acc", contract(X, Wg, over="d"))
    with g.cube("up"):
        up = g.let("up_acc", contract(X, Wu, over="d"))
    with g.vector("combine"):
        Y = g.let("Y", cast(gate * sigmoid(gate) * up, dtype))
    g.output(Y)
    return g.build()


def main() -> None:
    """The operator evaluated in float64 against torch."""
    import torch

    from fusion.graph.evaluate import evaluate

    X, Wg, Wu = (torch.randn(s, dtype=torch.float64) for s in ((32, 16), (16, 48), (16, 48)))
    result = evaluate(swiglu(tokens=32, dim=16, hidden=48), {"X": X, "Wg": Wg, "Wu": Wu})["Y"]
    torch.testing.assert_close(result, torch.nn.functional.silu(X @ Wg) * (X @ Wu))
    print("swiglu agrees with torch")


if __name__ == "__main__":
    main()
