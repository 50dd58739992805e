"""The everyday operators against torch in float64."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from fusion.errors import FusionError
from fusion.graph.evaluate import evaluate
from kernels.linear import gemm, gemm_bias_relu, mlp
from kernels.norm import layer_norm, rms_norm
from tests.inputs import assert_close, random_inputs


def test_gemm() -> None:
    graph = gemm(M=3, N=4, K=5)
    x = random_inputs(graph)
    assert_close(evaluate(graph, x)["C"], x["A"] @ x["B"])


def test_gemm_bias_relu() -> None:
    graph = gemm_bias_relu(M=3, N=4, K=5)
    x = random_inputs(graph)
    assert_close(evaluate(graph, x)["C"], functional.relu(functional.linear(x["A"], x["B"].T, x["bias"])))


def test_mlp() -> None:
    graph = mlp(tokens=3, dim=4, hidden=5)
    x = random_inputs(graph)
    assert_close(evaluate(graph, x)["Y"], functional.relu(x["X"] @ x["W1"]) @ x["W2"])


def test_rms_norm() -> None:
    graph = rms_norm(tokens=3, dim=7, eps=0.1)
    x = random_inputs(graph)
    assert_close(evaluate(graph, x)["Y"], functional.rms_norm(x["X"], (7,), x["weight"], 0.1))


def test_layer_norm() -> None:
    graph = layer_norm(tokens=3, dim=7, eps=0.1)
    x = random_inputs(graph)
    assert_close(evaluate(graph, x)["Y"], functional.layer_norm(x["X"], (7,), x["weight"], x["bias"], 0.1))


def test_sums_are_made_in_float32() -> None:
    """Squares of float16 numbers beyond 256 overflow float16: the sum must not."""
    graph = rms_norm(tokens=1, dim=64)
    x = {"X": torch.full((1, 64), 1000.0), "weight": torch.ones(64)}
    assert_close(evaluate(graph, x, "declared")["Y"], torch.ones(1, 64, dtype=torch.float16), 1e-3)


@pytest.mark.parametrize("operator", [rms_norm, layer_norm])
def test_refuses_a_negative_eps(operator) -> None:
    with pytest.raises(FusionError, match=r"eps=-1\.0 is negative"):
        operator(eps=-1.0)
