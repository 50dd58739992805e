"""Each invariant of the language is broken by a graph that breaks it and nothing before it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fusion.errors import FusionError
from fusion.graph import Carry, Dim, Graph, Op, Stage, StageGraph, Value, contract, expand, from_text, gather, to_text, total, verify
from fusion.graph.verify import INVARIANTS
from tests.graph.small import product, softmax_sum


def edited(graph: StageGraph, *changes: tuple[str, str]) -> str:
    text = to_text(graph)
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in\n{text}"
        text = text.replace(old, new)
    return text


def two_stages_of_one_name() -> StageGraph:
    return from_text(edited(product(), ("vector round:", "vector mul:")))


def two_dims_of_one_name() -> StageGraph:
    return from_text(edited(product(), ("dim n = 4", "dim n = 4\ndim n = 4")))


def undeclared_dim() -> StageGraph:
    return from_text(edited(product(), ("dim n = 4\n", "")))


def undeclared_scan() -> StageGraph:
    return from_text(edited(product(), ("vector round:", "vector round scan z:")))


def assigned_twice() -> StageGraph:
    graph = product()
    again = Stage("again", "vector", (Op("cast", "C", ("acc",), attr="float16"),))
    return verified(graph.with_stages([*graph.stages, again]))


def assigned_input() -> StageGraph:
    graph = product()
    return verified(graph.with_stages([*graph.stages, Stage("again", "vector", (Op("copy", "A", ("A",)),))]))


def read_too_early() -> StageGraph:
    graph = product()
    return verified(graph.with_stages(graph.stages[::-1]))


def wrong_dtype() -> StageGraph:
    return from_text(edited(product(), ("acc : float32", "acc : float16")))


def wrong_dims() -> StageGraph:
    return from_text(edited(product(), ("acc : float32[m n]", "acc : float32[m]")))


def undeclared_value() -> StageGraph:
    graph = product()
    return verified(graph.with_stages(graph.stages, [v for v in graph.values if v.name != "acc"]))


def contraction_on_vector() -> StageGraph:
    return from_text(edited(product(), ("cube mul:", "vector mul:")))


def cast_on_cube() -> StageGraph:
    return from_text(edited(product(), ("vector round:", "cube round:")))


def accumulated_part_read_again() -> StageGraph:
    g = Graph("parts")
    g.dim("m", 2)
    g.dim("k", 3)
    A, B = g.input("A", "m k", "float16"), g.input("B", "k", "float16")
    with g.cube("mul"):
        one = g.let("one", contract(A, B, over="k"))
        both = g.let("both", one + contract(A, B, over="k"))
    with g.vector("use"):
        g.output(g.let("out", one + both))
    return g.build()


def no_output() -> StageGraph:
    return from_text(edited(product(), ("output C : float16[m n]\n", "")))


def unwritten_output() -> StageGraph:
    graph = product()
    return verified(replace(graph, values=(*graph.values, Value("lost", ("m",), "float32", "output"))))


def after_an_intermediate() -> StageGraph:
    return from_text(edited(product(), ("input B : float16[k n]", "input B : float16[k n] after acc")))


def after_its_own_output() -> StageGraph:
    text = edited(
        product(), ("input B : float16[k n]", "input B : float16[k n]\ninput late : float32[m n] after C"), ("cast(acc)", "cast(late)")
    )
    return from_text(text)


def host_cycle() -> StageGraph:
    return from_text(edited(product(), ("input B : float16[k n]", "input B : float16[k n] after C")))


def state_never_carried() -> StageGraph:
    graph = softmax_sum()
    return verified(replace(graph, carries=(replace(graph.carries[0], next=""), *graph.carries[1:])))


def state_carried_from_outside() -> StageGraph:
    graph = softmax_sum()
    return verified(replace(graph, carries=(*graph.carries[:1], replace(graph.carries[1], next="out"))))


def state_of_another_shape() -> StageGraph:
    return from_text(edited(softmax_sum(), ("from 0.0 then s_new", "from 0.0 then x")))


def state_from_a_wider_value() -> StageGraph:
    return from_text(edited(softmax_sum(), ("along k from 0.0", "along k from X")))


def state_read_outside() -> StageGraph:
    return from_text(edited(softmax_sum(), ("out : float32[q] = add(m_new, s_new)", "out : float32[q] = add(m, s_new)")))


def state_from_its_own_scan() -> StageGraph:
    return from_text(edited(softmax_sum(), ("along k from 0.0", "along k from m_new")))


def step_value_leaves() -> StageGraph:
    return from_text(edited(softmax_sum(), ("add(m_new, s_new)", "add(m_new, m_new__1)")))


def step_size_shows(step: int = 0) -> StageGraph:
    g = Graph("running")
    g.dim("q", 2)
    g.dim("k", 4, step=step)
    X = g.input("X", "q k", "float32")
    with g.scan("k"):
        s = g.state("s", "q", init=0.0)
        with g.vector("step"):
            before = g.let("before", expand(s, "q k"))
            g.carry(s, g.let("s_new", s + total(X, over="k")))
    g.output(before)
    return g.build()


def gather_along_the_scan() -> StageGraph:
    g = Graph("rows")
    g.dim("q", 2)
    g.dim("k", 4)
    X, index = g.input("X", "k", "float32"), g.input("index", "q", "int32")
    with g.scan("k"):
        s = g.state("s", "q", init=0.0)
        with g.vector("step"):
            s_new = g.let("s_new", s + gather(X, index, "k"))
        g.carry(s, s_new)
    g.output(s_new)
    return g.build()


def scan_left_and_entered_again() -> StageGraph:
    ops = {
        "first": ("a", ("X", 1.0), "k"),
        "outside": ("b", ("a", 1.0), ""),
        "second": ("c", ("a", "b"), "k"),
    }
    values = (Value("X", ("k",), "float32", "input"), *(Value(out, ("k",), "float32") for out, _, _ in ops.values()))
    stages = tuple(Stage(name, "vector", (Op("add", out, args),), scan) for name, (out, args, scan) in ops.items())
    outputs = tuple(replace(v, role="output") if v.name == "c" else v for v in values)
    return verified(StageGraph("again", (Dim("k", 4),), outputs, stages))


def verified(graph: StageGraph) -> StageGraph:
    verify(graph)
    return graph


BREAKERS = [
    (two_stages_of_one_name, "names-differ", "two stages are called mul"),
    (two_dims_of_one_name, "names-differ", "two dims are called n"),
    (undeclared_dim, "dims-are-declared", "undeclared dim n"),
    (undeclared_scan, "dims-are-declared", "stage round scans the undeclared dim z"),
    (assigned_twice, "single-assignment", "stage again assigns C"),
    (assigned_input, "single-assignment", "stage again assigns A"),
    (read_too_early, "reads-follow-writes", "stage round reads acc before"),
    (wrong_dtype, "values-are-typed", "acc is declared float16[m n], contract gives float32[m n]"),
    (wrong_dims, "values-are-typed", "acc is declared float32[m], contract gives float32[m n]"),
    (undeclared_value, "values-are-typed", "assigns acc, which is not declared"),
    (contraction_on_vector, "units-run-what-they-can", "acc = contract needs cube"),
    (cast_on_cube, "units-run-what-they-can", "C = cast needs vector"),
    (accumulated_part_read_again, "units-run-what-they-can", "both = add needs vector"),
    (no_output, "outputs-are-written", "no value is marked"),
    (unwritten_output, "outputs-are-written", "output lost is not assigned"),
    (after_an_intermediate, "after-names-outputs", "after acc, which is not an output"),
    (after_its_own_output, "after-names-outputs", "stage round reads late, which exists only after C"),
    (host_cycle, "acyclic", "cycle: mul -> round -> mul"),
    (state_never_carried, "carries-are-closed", "state m is never carried"),
    (state_carried_from_outside, "carries-are-closed", "carried by out, which is not in the scan along k"),
    (state_of_another_shape, "carries-are-closed", "state s is float32[q], it is carried by x, which is float32[q k]"),
    (state_from_a_wider_value, "carries-are-closed", "state s starts as X"),
    (state_read_outside, "states-stay-inside", "stage finish reads the state m outside"),
    (state_from_its_own_scan, "states-stay-inside", "starts as m_new, which its own scan assigns"),
    (step_value_leaves, "scans-end-well", "m_new__1 of the scan along k is read by finish"),
    (step_size_shows, "scans-end-well", "declare k with step=1"),
    (gather_along_the_scan, "scans-index-other-dims", "gather along k"),
    (scan_left_and_entered_again, "scans-run-as-one", "first+second -> outside -> first+second"),
]


@pytest.mark.parametrize(("build", "invariant", "message"), BREAKERS, ids=[b[0].__name__ for b in BREAKERS])
def test_a_broken_invariant_is_named(build, invariant: str, message: str) -> None:
    with pytest.raises(FusionError) as error:
        build()
    assert f"invariant {invariant}" in str(error.value)
    assert message in str(error.value)


def test_every_invariant_is_broken_by_a_test() -> None:
    assert {b[1] for b in BREAKERS} == {i.__name__.replace("_", "-") for i in INVARIANTS}


def test_a_step_of_one_may_show() -> None:
    assert step_size_shows(step=1).dim("k").step == 1


def test_small_graphs_hold() -> None:
    verify(product())
    verify(softmax_sum())
    assert Carry("m", "m_new", -1e30, "k") in softmax_sum().carries
