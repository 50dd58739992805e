"""Loop bounds from masks: exactly the tiles on which a condition cannot hold are skipped, in Python and in the emitted text."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable
from functools import reduce
from types import SimpleNamespace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fusion.emit.expr import affine, tile_limits
from fusion.graph import Affine, Expr, Graph, StageGraph, cast, contract, exp, largest, maximum, smallest, total, where
from fusion.plan.masks import Bound, bound, conditions, dead_ops, skippable, tile_range
from fusion.plan.structure import Structure
from fusion.plan.tiling import Tiling

TILE_SIZES = st.sampled_from([1, 2, 3, 4, 8])
STEPS = st.sampled_from([-2, -1, 1, 2])
CONDITIONS = st.builds(lambda q, k, c: Affine((("q", q), ("k", k)), c), st.integers(-2, 2), STEPS, st.integers(-12, 12))


def tiling(q: int, k: int, tile_q: int, tile_k: int) -> Tiling:
    g = Graph("any")
    g.dim("q", q)
    g.dim("k", k)
    x = g.input("x", "q k", "float32")
    with g.vector("one"):
        y = g.let("y", x * 2.0)
    g.output(y)
    return Tiling(g.build(), (("q", tile_q), ("k", tile_k)))


def possible(t: Tiling, condition: Affine, q_tile: int, k_tile: int) -> bool:
    """Whether the condition holds anywhere on a pair of tiles."""
    terms = dict(condition.terms)
    points = itertools.product(range(t.tile("q")), range(t.tile("k")))
    starts = q_tile * t.tile("q"), k_tile * t.tile("k")
    return any(terms.get("q", 0) * (starts[0] + q) + terms.get("k", 0) * (starts[1] + k) + condition.const >= 0 for q, k in points)


def bounds_of(t: Tiling, found: list[Affine]) -> tuple[Bound, ...]:
    return tuple(b for c in found if (b := bound(t, c, "k", frozenset({"q"}))))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(1, 20), st.integers(1, 20), TILE_SIZES, TILE_SIZES, st.lists(CONDITIONS, min_size=1, max_size=3))
def test_only_tiles_where_every_condition_is_possible_are_visited(q: int, k: int, tile_q: int, tile_k: int, found: list[Affine]) -> None:
    t = tiling(q, k, tile_q, tile_k)
    bounds = bounds_of(t, found)
    for i in range(t.trips("q")):
        alive = [j for j in range(t.trips("k")) if all(possible(t, c, i, j) for c in found)]
        low, high = tile_range(t, bounds, "k", {"q": i * tile_q})
        assert low < high
        assert low >= 0
        assert high <= t.trips("k")
        if alive:
            assert list(range(low, high)) == alive
        else:
            assert high == low + 1, "one tile is visited where none is alive"


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(1, 20), st.integers(1, 20), TILE_SIZES, TILE_SIZES, st.lists(CONDITIONS, max_size=3))
def test_the_emitted_bounds_are_the_same_numbers(q: int, k: int, tile_q: int, tile_k: int, found: list[Affine]) -> None:
    t = tiling(q, k, tile_q, tile_k)
    bounds = bounds_of(t, found)
    low, high = tile_limits(t, bounds, "k", {"q": "q_i"}, exact=False)
    names = {"T": SimpleNamespace(max=max, min=min)}
    for i in range(t.trips("q")):
        assert (eval(low, names, {"q_i": i}), eval(high, names, {"q_i": i})) == tile_range(t, bounds, "k", {"q": i * tile_q})


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.integers(2, 20), st.integers(2, 20), TILE_SIZES, TILE_SIZES, CONDITIONS)
def test_the_shorter_text_is_right_where_no_block_is_empty(q: int, k: int, tile_q: int, tile_k: int, c: Affine) -> None:
    t = tiling(q, k, tile_q, tile_k)
    assume(all(any(possible(t, c, i, j) for j in range(t.trips("k"))) for i in range(t.trips("q"))))
    bounds = bounds_of(t, [c])
    low, high = tile_limits(t, bounds, "k", {"q": "q_i"}, exact=True)
    names = {"T": SimpleNamespace(max=max, min=min)}
    for i in range(t.trips("q")):
        assert (eval(low, names, {"q_i": i}), eval(high, names, {"q_i": i})) == tile_range(t, bounds, "k", {"q": i * tile_q})


@given(st.lists(st.tuples(st.sampled_from(["a", "b * 4"]), st.integers(-3, 3)), max_size=4), st.integers(-9, 9))
def test_affine_text_is_the_sum(terms: list[tuple[str, int]], const: int) -> None:
    want = reduce(operator.add, (c * {"a": 7, "b * 4": 20}[t] for t, c in terms), const)
    assert eval(affine(terms, const), {}, {"a": 7, "b": 5}) == want


# ---- what is dead


def attention(window: int | None = None) -> StageGraph:
    """O = sum of exp(mask(Q K^T) - m) V along k, with the running maximum m."""
    g = Graph("attention")
    q, k = g.dim("q", 64), g.dim("k", 64)
    g.dim("d", 16)
    Q, K, V = (g.input(n, f"{rows} d", "float16") for n, rows in (("Q", "q"), ("K", "k"), ("V", "k")))
    seen = k <= q if window is None else (k <= q) & (q - k < window)
    with g.scan("k"):
        m, o = g.state("m", "q", init=-1e30), g.state("o", "q d", init=0.0)
        with g.cube("qk"):
            s = g.let("s", contract(Q, K, over="d"))
        with g.vector("soft"):
            x = g.let("x", where(seen, s, -1e30))
            m_new = g.let("m_new", maximum(m, largest(x, over="k")))
            alpha = g.let("alpha", exp(m - m_new))
            p = g.let("p", cast(exp(x - m_new), "float16"))
        with g.cube("pv"):
            pv = g.let("pv", contract(p, V, over="k"))
        with g.vector("add"):
            o_new = g.let("o_new", o * alpha + pv)
        g.carry(m, m_new)
        g.carry(o, o_new)
    g.output(o_new)
    return g.build()


@pytest.mark.parametrize("window", [None, 20])
def test_all_of_an_attention_step_is_dead_outside_of_its_mask(window: int | None) -> None:
    graph = attention(window)
    body = frozenset(op.out for s in graph.stages for op in s.body)
    assert skippable(graph, body) == conditions(graph)
    assert len(conditions(graph)) == (1 if window is None else 2)


def masked(otherwise: float, over: Callable[..., Expr] | None = None) -> StageGraph:
    """y = x * 1 where k <= q, else a constant, stored or reduced over k."""
    g = Graph("masked")
    q, k = g.dim("q", 64), g.dim("k", 64)
    X = g.input("X", "q k", "float32")
    with g.vector("mask"):
        x = g.let("x", where(k <= q, X, otherwise))
    with g.vector("use"):
        y = g.let("y", over(x * 1.0, over="k") if over else x * 1.0)
    g.output(y)
    return g.build()


def dead(graph: StageGraph) -> frozenset[str]:
    return dead_ops(graph, conditions(graph)[0])


def test_what_is_stored_is_needed_everywhere() -> None:
    assert dead(masked(0.0)) == frozenset()


@pytest.mark.parametrize(("reduction", "nothing", "something"), [(total, 0.0, 1.0), (largest, -1e30, 0.0)])
def test_reductions_of_what_adds_nothing_are_dead(reduction: Callable[..., Expr], nothing: float, something: float) -> None:
    assert dead(masked(nothing, reduction)) == {"x", "y__1", "y"}
    assert dead(masked(something, reduction)) == frozenset()


def test_a_sum_of_products_that_add_nothing_is_dead() -> None:
    g = Graph("two")
    q, k, _ = g.dim("q", 64), g.dim("k", 64), g.dim("d", 16)
    S, O = g.input("S", "q k", "float32"), g.input("O", "q d", "float16")  # noqa: E741
    with g.vector("mask"):
        high = g.let("high", cast(where(k <= q, S, 0.0), "float16"))
        low = g.let("low", cast(where(k <= q, S * 0.001, 0.0), "float16"))
    with g.cube("products"):
        first, second = g.let("first", contract(high, O, over="q")), g.let("second", contract(low, O, over="q"))
        both = g.let("both", first + second)
    with g.vector("round"):
        g.output(g.let("Y", exp(both)))
    graph = g.build()
    assert {"first", "second", "both"} <= dead(graph)
    assert "Y" not in dead(graph), "exp of 0 is 1"


def test_a_tile_that_every_turn_writes_is_not_left_out() -> None:
    """Keys beyond the last query are masked out: their rows of the product are 0, and somebody has to write that."""
    g = Graph("wide")
    q, k, _ = g.dim("q", 64), g.dim("k", 256, tiles=(64,)), g.dim("d", 16)
    P, O = g.input("P", "q k", "float32"), g.input("O", "q d", "float16")  # noqa: E741
    with g.vector("mask"):
        p = g.let("p", cast(where(k <= q, P, 0.0), "float16"))
    with g.cube("product"):
        g.output(g.let("Y", contract(p, O, over="q")))
    tiling = Tiling(g.build(), (("q", 64), ("k", 64), ("d", 16)))
    looped = Structure(tiling, ("mask", "product"), (), ("k",))
    assert (looped.rewritten, looped.bounds) == (("Y",), {"k": ()})
    summed = Structure(Tiling(tiling.graph, (("q", 16), ("k", 64), ("d", 16))), ("mask", "product"), ("k",), ("q",))
    assert summed.rewritten == () and len(summed.bounds["q"]) == 1, "Y is whole after the loop"


def test_smallest_is_never_dead() -> None:
    assert dead(masked(-1e30, smallest)) == frozenset()


def test_a_tile_that_a_live_operation_reads_is_live_though_its_value_is_known() -> None:
    assert skippable(masked(-1.0), frozenset({"x"})) == ()
