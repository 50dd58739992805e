"""Small shapes keep what makes a run worth while."""

from __future__ import annotations

import pytest

import kernels
from fusion.graph import Graph, StageGraph, cast, contract, operator, rsqrt, total
from fusion.plan.tiling import matrix_dims
from fusion.verify.shrink import BUDGET, TILE, small_parameters, work


@pytest.mark.parametrize("name", kernels.names())
def test_every_operator_gets_a_shape_that_runs_in_seconds(name: str) -> None:
    operator = kernels.load(name)
    assert work(operator.build(**small_parameters(operator, {}))) < 4 * BUDGET


def test_dims_with_several_tiles_keep_several_and_get_a_tail() -> None:
    operator = kernels.load("gqa_sink_bwd")
    graph = operator.build(**small_parameters(operator, {"window": 128}))
    for d in ("q", "k"):
        assert d in matrix_dims(graph)
        assert graph.dim(d).size > 2 * TILE and graph.dim(d).size % TILE


def test_a_shape_that_is_small_enough_stays_as_it_is() -> None:
    operator = kernels.load("gqa_sink_bwd")
    given = {"heads": 2, "groups": 1, "seq_len": 96, "dim": 64}
    assert {k: v for k, v in small_parameters(operator, given).items() if k in given} == given


@operator
def normalised(rows: int = 200, inner: int = 4096, cols: int = 256) -> StageGraph:
    """Y = X / |X| W: a row of X is read twice, so that it must be one tile."""
    g = Graph("normalised")
    g.dim("m", rows)
    g.dim("k", inner)
    g.dim("n", cols)
    X, W = g.input("X", "m k", "float16"), g.input("W", "k n", "float16")
    with g.vector("norm"):
        x = g.let("x", cast(X, "float32"))
        h = g.let("h", cast(x * rsqrt(total(x * x, over="k")), "float16"))
    with g.cube("product"):
        y = g.let("y", contract(h, W, over="k"))
    g.output(y)
    return g.build()


def test_a_row_that_must_be_one_tile_gets_no_longer() -> None:
    """The row may just fit: halved from 4096 to 2048, it gets its tail by half of that and one more."""
    assert small_parameters(normalised, {}) == {"rows": 200, "inner": 1025, "cols": 256}
