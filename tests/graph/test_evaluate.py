"""The torch reading: what every operation means, in any order of dims, in steps of any size, exact or rounded."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion.errors import FusionError
from fusion.graph import (
    Expr,
    Graph,
    StageGraph,
    absolute,
    cast,
    exp,
    expand,
    gather,
    largest,
    log,
    maximum,
    minimum,
    part,
    position,
    relu,
    rsqrt,
    scatter_add,
    sigmoid,
    smallest,
    sqrt,
    topk,
    topk_index,
    total,
    where,
)
from fusion.graph.evaluate import evaluate, evaluate_all
from fusion.graph.ops import OPS, cube_flops, vector_units
from tests.graph.small import product, softmax_sum
from tests.inputs import assert_close, random_inputs
from tests.strategies import stage_graphs

X = torch.tensor([[0.5, -2.0, 3.0], [1.5, 0.25, -0.75]], dtype=torch.float64)
Y = torch.tensor([2.0, -1.0, 0.5], dtype=torch.float64)

MEANINGS: list[tuple[str, Callable[[Expr, Expr], Expr], torch.Tensor]] = [
    ("add", lambda x, y: x + y, X + Y),
    ("sub", lambda x, y: x - y, X - Y),
    ("mul", lambda x, y: x * y, X * Y),
    ("div", lambda x, y: x / y, X / Y),
    ("div", lambda x, y: 1.0 / y + x * 0.0, 1 / Y + X * 0),
    ("max", lambda x, y: maximum(x, y), torch.maximum(X, Y.expand(2, 3))),
    ("min", lambda x, y: minimum(x, 1.0), X.clamp(max=1)),
    ("exp", lambda x, y: exp(x), torch.tensor([[math.exp(v) for v in row] for row in X.tolist()], dtype=torch.float64)),
    ("log", lambda x, y: log(absolute(x)), torch.tensor([[math.log(abs(v)) for v in r] for r in X.tolist()], dtype=torch.float64)),
    ("sqrt", lambda x, y: sqrt(x * x), X.abs()),
    ("rsqrt", lambda x, y: rsqrt(x * x), 1 / X.abs()),
    ("abs", lambda x, y: absolute(x), X * X.sign()),
    ("relu", lambda x, y: relu(x), (X + X.abs()) / 2),
    ("sigmoid", lambda x, y: sigmoid(x), 1 / (1 + torch.exp(-X))),
    ("copy", lambda x, y: expand(y, "i j") + 0.0 * x, Y.expand(2, 3)),
    ("cast", lambda x, y: cast(x, "float16"), X),
    ("select", lambda x, y: where(x >= y, x, y), torch.maximum(X, Y.expand(2, 3))),
    ("ge", lambda x, y: where(x >= 0.5, x, 0.0), torch.tensor([[0.5, 0, 3], [1.5, 0, 0]], dtype=torch.float64)),
    ("lt", lambda x, y: where(x < 0.5, x, 0.0), torch.tensor([[0, -2.0, 0], [0, 0.25, -0.75]], dtype=torch.float64)),
    ("lt", lambda x, y: where(x > 0.5, x, 0.0), torch.tensor([[0, 0, 3.0], [1.5, 0, 0]], dtype=torch.float64)),
    ("ge", lambda x, y: where(x <= 0.5, x, 0.0), torch.tensor([[0.5, -2, 0], [0, 0.25, -0.75]], dtype=torch.float64)),
    ("lt", lambda x, y: where(x > y, 1.0 + 0.0 * x, 0.0), (X > Y).double()),
    ("add", lambda x, y: 1.0 - x, 1 - X),
    ("mul", lambda x, y: -x, -X),
    ("sum", lambda x, y: total(x, "j"), X.sum(1)),
    ("amax", lambda x, y: largest(x, "j"), torch.tensor([3.0, 1.5], dtype=torch.float64)),
    ("amin", lambda x, y: smallest(x, "i j"), torch.tensor(-2.0, dtype=torch.float64)),
    ("topk", lambda x, y: topk(x, "j", "t"), torch.tensor([[3.0, 0.5], [1.5, 0.25]], dtype=torch.float64)),
]


@pytest.mark.parametrize(("name", "write", "want"), MEANINGS)
def test_meaning(name: str, write: Callable[[Expr, Expr], Expr], want: torch.Tensor) -> None:
    g = Graph("one")
    for dim, size in (("i", 2), ("j", 3), ("t", 2)):
        g.dim(dim, size)
    x, y = g.input("x", "i j", "float32"), g.input("y", "j", "float32")
    with g.vector("v"):
        out = g.let("out", write(x, y))
    g.output(out)
    graph = g.build()
    assert name in {op.fn for op in graph.stages[0].body}
    assert_close(evaluate(graph, {"x": X, "y": Y})["out"], want, 1e-15)


def indexed(write: Callable[[Expr, Expr], Expr], layout: str = "") -> dict[str, torch.Tensor]:
    """x[b k d] with an index[b q]."""
    g = Graph("indexed")
    for dim, size in (("b", 2), ("q", 3), ("k", 4), ("d", 2), ("t", 3)):
        g.dim(dim, size)
    x, index = g.input("x", "b k d", "float32"), g.input("index", "b q", "int32")
    with g.vector("v"):
        out = g.let("out", write(x, index))
    g.output(out, layout)
    data = torch.arange(16, dtype=torch.float64).reshape(2, 4, 2)
    return evaluate(g.build(), {"x": data, "index": torch.tensor([[3, 0, 3], [-1, 2, 4]])}) | {"x": data}


def test_gather_reads_rows_and_0_outside() -> None:
    env = indexed(lambda x, index: gather(x, index, "k"))
    x = env["x"]
    zero = torch.zeros(2, dtype=torch.float64)
    want = torch.stack([torch.stack([x[0, 3], x[0, 0], x[0, 3]]), torch.stack([zero, x[1, 2], zero])])
    assert_close(env["out"], want)


def test_scatter_adds_rows_and_drops_those_outside() -> None:
    env = indexed(lambda x, index: scatter_add(gather(x, index, "k") + 1.0, index, over="q", into="t"))
    x = env["x"]
    want = torch.zeros(2, 3, 2, dtype=torch.float64)
    want[0, 0] = x[0, 0] + 1
    want[1, 2] = x[1, 2] + 1
    assert_close(env["out"], want)


def test_scatter_sums_what_meets() -> None:
    g = Graph("meet")
    g.dim("q", 4)
    g.dim("k", 2)
    x, index = g.input("x", "q", "float32"), g.input("index", "q", "int32")
    with g.vector("v"):
        out = g.let("out", scatter_add(x, index, over="q", into="k"))
    g.output(out)
    have = evaluate(g.build(), {"x": torch.tensor([1.0, 2.0, 4.0, 8.0]), "index": torch.tensor([1, 0, 1, 1])})["out"]
    assert have.tolist() == [2.0, 13.0]


def test_part_slices_and_position_counts() -> None:
    env = indexed(lambda x, index: part(x, "k", "t", start=1) + cast(position("t"), "float32") * 10.0, "b t d")
    assert_close(env["out"], env["x"][:, 1:4] + torch.tensor([0, 10, 20], dtype=torch.float64)[:, None])


def test_topk_index_prefers_the_smaller_position() -> None:
    g = Graph("ties")
    g.dim("k", 5)
    g.dim("t", 3)
    x = g.input("x", "k", "float32")
    with g.vector("v"):
        out = g.let("out", topk_index(x, "k", "t"))
    g.output(out)
    assert evaluate(g.build(), {"x": torch.tensor([1.0, 7.0, 7.0, 3.0, 7.0])})["out"].tolist() == [1, 2, 4]


@given(stage_graphs(scans=True), st.integers(1, 6), st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_any_step_gives_the_same(graph: StageGraph, step: int, seed: int) -> None:
    inputs = random_inputs(graph, seed)
    whole, steps = evaluate(graph, inputs), evaluate(graph, inputs, scan_step=step)
    assert whole.keys() == steps.keys()
    for name, value in whole.items():
        assert_close(steps[name], value)


@pytest.mark.parametrize("step", [1, 2, 3, 7, 100])
def test_an_online_softmax_is_the_plain_one(step: int) -> None:
    graph = softmax_sum()
    inputs = random_inputs(graph)
    seen = torch.arange(7)[None] <= torch.arange(4)[:, None] + 2
    plain = torch.where(seen, inputs["X"], -torch.inf)
    have = evaluate(graph, inputs, scan_step=step)
    assert_close(have["s_new"], torch.exp(plain - plain.amax(1, keepdim=True)).sum(1))


@given(stage_graphs(scans=True))
@settings(max_examples=25, deadline=None)
def test_order_of_the_stages_does_not_matter(graph: StageGraph) -> None:
    """Stages that hang on nothing come first here, whatever their scan."""
    ready = sorted(range(len(graph.stages)), key=lambda i: len(graph.graph.pred[graph.stages[i].name]) > 0)
    if [s for s in (graph.stages[i] for i in ready) if s.scan] != [s for s in graph.stages if s.scan]:
        return
    moved = replace(graph, stages=tuple(graph.stages[i] for i in ready))
    inputs = random_inputs(graph)
    have, want = evaluate_all(moved, inputs), evaluate_all(graph, inputs)
    for name in want:
        assert_close(have[name], want[name])


def test_two_scans_along_one_dim_follow_each_other() -> None:
    """The second reads what the first ends with, not what it has in between."""
    g = Graph("twice")
    g.dim("q", 2)
    g.dim("k", 5)
    x = g.input("x", "q k", "float32")
    with g.scan("k"):
        m = g.state("m", "q", init=-1e30)
        with g.vector("find"):
            top = g.let("top", maximum(m, largest(x, over="k")))
        g.carry(m, top)
    with g.scan("k"):
        s = g.state("s", "q", init=0.0)
        with g.vector("sum"):
            e = g.let("e", exp(x - top))
            s_new = g.let("s_new", s + total(e, over="k"))
        g.carry(s, s_new)
    g.output(e)
    g.output(s_new)
    graph = g.build()
    assert graph.scan_groups() == (("find",), ("sum",))
    data = torch.randn(2, 5, dtype=torch.float64)
    for step in (1, 2, 5):
        have = evaluate(graph, {"x": data}, scan_step=step)
        assert_close(have["e"], torch.exp(data - data.amax(1, keepdim=True)))
        assert_close(have["s_new"], torch.exp(data - data.amax(1, keepdim=True)).sum(1))


def test_layouts_and_orders_of_dims() -> None:
    g = Graph("orders")
    for dim, size in (("b", 2), ("n", 3), ("g", 2), ("d", 5)):
        g.dim(dim, size)
    x, y = g.input("x", "b (n g) d", "float32"), g.input("y", "d n", "float32")
    with g.vector("v"):
        out = g.let("out", y + x)
    g.output(out, "(g d) (b n)")
    data = {"x": torch.randn(2, 6, 5, dtype=torch.float64), "y": torch.randn(5, 3, dtype=torch.float64)}
    want = data["x"].reshape(2, 3, 2, 5) + data["y"].T[None, :, None, :]
    assert_close(evaluate(g.build(), data)["out"], want.permute(2, 3, 0, 1).reshape(10, 6))


def test_declared_precision_rounds_where_the_graph_says() -> None:
    graph = product(3, 4, 64)
    inputs = random_inputs(graph)
    half = {k: v.half() for k, v in inputs.items()}
    exact = {k: v.double() for k, v in half.items()}
    have = evaluate(graph, inputs, "declared")["C"]
    assert have.dtype == torch.float16
    assert torch.equal(have, (half["A"].float() @ half["B"].float()).half())
    assert torch.equal(evaluate(graph, exact)["C"], torch.einsum("mk,kn->mn", exact["A"], exact["B"]))


@pytest.mark.parametrize("precision", ["golden", "declared"])
def test_casts_to_integers_round_to_nearest_even_and_saturate(precision: Literal["golden", "declared"]) -> None:
    g = Graph("round")
    g.dim("i", 6)
    x = g.input("x", "i", "float32")
    with g.vector("v"):
        y = g.let("y", cast(x, "int8"))
    g.output(y)
    data = {"x": torch.tensor([0.5, 1.5, -2.5, 2.7, 300.0, -300.0])}
    assert evaluate(g.build(), data, precision)["y"].tolist() == [0, 2, -2, 3, 127, -128]


@pytest.mark.parametrize(("name", "value"), [("A", None), ("B", torch.zeros(4, 5)), ("A", torch.zeros(3, 5, 1))])
def test_missing_and_misshapen_inputs_are_named(name: str, value: torch.Tensor | None) -> None:
    inputs = {k: v for k, v in random_inputs(product()).items() if k != name} | ({name: value} if value is not None else {})
    with pytest.raises(FusionError, match=f"input {name}"):
        evaluate(product(), inputs)


def test_counts() -> None:
    assert cube_flops(10) == 20
    assert vector_units("exp", 100) > vector_units("add", 100) == 100
    assert all(spec.weight >= 0 and spec.doc for spec in OPS.values())


def test_casts_between_integers_saturate() -> None:
    g = Graph("narrow")
    g.dim("i", 3)
    x = g.input("x", "i", "int32")
    with g.vector("v"):
        g.output(g.let("y", cast(x, "int8")))
    found = evaluate(g.build(), {"x": torch.tensor([-48103, 5, 300], dtype=torch.int32)})
    assert found["y"].tolist() == [-128, 5, 127]
