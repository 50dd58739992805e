"""What the builder refuses at the line where it is written, and what it makes of expressions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fusion.errors import FusionError
from fusion.graph import (
    Dim,
    Expr,
    Graph,
    StageGraph,
    Value,
    cast,
    contract,
    expand,
    gather,
    operator,
    scatter_add,
    topk,
    total,
    where,
)
from fusion.graph.types import Affine, Stage


class Bench:
    """A graph with some dims and inputs, a Vector stage open."""

    def __init__(self) -> None:
        self.g = Graph("bench")
        self.q = self.g.dim("q", 4)
        self.k = self.g.dim("k", 6)
        self.t = self.g.dim("t", 9)
        self.x = self.g.input("x", "q k", "float16")
        self.y = self.g.input("y", "k", "float32")
        self.i = self.g.input("i", "q", "int32")


TYPING: list[tuple[str, Callable[[Bench], Expr]]] = [
    ("mul of float16 and float32", lambda s: s.x * s.y),
    ("sum over q, which no operand has", lambda s: total(s.y, over="q")),
    ("sum over no dim", lambda s: total(s.y, over="")),
    ("sum over a dim twice", lambda s: total(s.y, over="k k")),
    ("unknown dim 'z'", lambda s: total(s.y, over="z")),
    ("unknown dtype 'float17'", lambda s: cast(s.y, "float17")),
    ("did you mean float16", lambda s: cast(s.y, "flot16")),
    ("needs a value and an int32", lambda s: gather(s.y, s.x, "k")),
    ("gather along k by an index that has it too", lambda s: gather(s.y, cast(s.y, "int32"), "k")),
    ("scatter_add of x needs an index over its own dims", lambda s: scatter_add(s.x, s.i, over="q", into="k")),
    ("the largest 9 of 6 along k", lambda s: topk(s.y, over="k", into="t")),
    ("unknown dim 'kk'", lambda s: topk(s.y, over="k", into="kk")),
    ("expand of q k to k", lambda s: expand(s.x, "k")),
    ("contract over no dim", lambda s: contract(s.x, s.x, over="")),
    ("a contracted dim must be in both", lambda s: contract(s.x, s.i, over="k")),
]


@pytest.mark.parametrize(("message", "write"), TYPING, ids=[m for m, _ in TYPING])
def test_typing_rules(message: str, write: Callable[[Bench], Expr]) -> None:
    bench = Bench()
    with pytest.raises(FusionError) as error, bench.g.vector("v"):
        bench.g.let("out", write(bench))
    assert message in str(error.value)
    assert "bench.v" in str(error.value)


def nested_stage(s: Bench) -> None:
    with s.g.vector("one"), s.g.vector("two"):
        pass


def nested_scan(s: Bench) -> None:
    with s.g.scan("q"), s.g.scan("k"):
        pass


def scan_in_stage(s: Bench) -> None:
    with s.g.vector("one"), s.g.scan("k"):
        pass


def empty_stage(s: Bench) -> None:
    with s.g.vector("one"):
        pass


def twice(s: Bench) -> None:
    with s.g.vector("one"):
        s.g.let("x", s.y * 2.0)


def same_stage(s: Bench) -> None:
    for name in ("a", "b"):
        with s.g.vector("one"):
            s.g.let(name, s.y * 2.0)


def unknown_state(s: Bench) -> None:
    with s.g.scan("k"):
        s.g.carry(s.x, s.x)


def unnamed_carry(s: Bench) -> None:
    with s.g.scan("k"):
        s.g.carry(s.g.state("s", "q", init=0.0), s.y * 2.0)


BUILDING: list[tuple[str, Callable[[Bench], object]]] = [
    ("dim q is declared twice", lambda s: s.g.dim("q", 3)),
    ("value x is assigned twice", lambda s: s.g.input("x", "q", "float16")),
    ("value w uses the undeclared dim 'z'", lambda s: s.g.input("w", "z", "float16")),
    ("value w names a dim twice", lambda s: s.g.input("w", "q q", "float16")),
    ("unknown dtype 'half'", lambda s: s.g.input("w", "q", "half")),
    ("output x has dims q k, the layout names q", lambda s: s.g.output(s.x, "q")),
    ("expected a value, not an expression", lambda s: s.g.output(s.x * 2.0)),
    ("a is assigned outside of a stage", lambda s: s.g.let("a", s.x)),
    ("stage two is opened inside of one", nested_stage),
    ("scan along k inside of a scan along q", nested_scan),
    ("scan along k inside of stage one", scan_in_stage),
    ("scan along the undeclared dim 'z'", lambda s: s.g.scan("z").__enter__()),
    ("stage one is empty", empty_stage),
    ("value x is assigned twice", twice),
    ("stage one is declared twice", same_stage),
    ("state s outside of a scan", lambda s: s.g.state("s", "q", init=0.0)),
    ("x is not a state", unknown_state),
    ("carry of s: expected a value", unnamed_carry),
    ("a condition over dim indices has no truth value", lambda s: 0 <= s.k <= s.q),
    ("not known while the graph is written", lambda s: s.x if s.x < 1.0 else s.y),
    ("dim 2k' is not an identifier".replace("dim ", "dim name '"), lambda s: s.g.dim("2k", 3)),
    ("'lambda' is a reserved word", lambda s: s.g.dim("lambda", 3)),
    ("size 0", lambda s: s.g.dim("z", 0)),
    ("must be positive", lambda s: s.g.dim("z", 4, tiles=(0,))),
]


@pytest.mark.parametrize(("message", "act"), BUILDING, ids=[m for m, _ in BUILDING])
def test_builder_refuses(message: str, act: Callable[[Bench], object]) -> None:
    with pytest.raises(FusionError) as error:
        act(Bench())
    assert message in str(error.value)


def test_a_number_is_no_expression() -> None:
    bench = Bench()
    with pytest.raises(FusionError, match="got float"), bench.g.vector("v"):
        bench.g.let("out", 1.0)  # type: ignore[arg-type]


def test_inner_names_of_similar_values_differ() -> None:
    bench = Bench()
    with bench.g.vector("v"):
        bench.g.let("a__b", bench.y * 2.0 + 1.0)
        out = bench.g.let("a", bench.y * 3.0 + 1.0)
    bench.g.output(out)
    assert [op.out for op in bench.g.build().stages[0].body] == ["a__b__1", "a__b", "a__1", "a"]


def test_conditions_are_affine_in_the_indices() -> None:
    bench = Bench()
    both = (bench.k <= bench.q) & (3 + bench.q - 2 * bench.k > 0)
    assert both.terms == (Affine((("k", -1), ("q", 1))), Affine((("k", -2), ("q", 1)), 2))
    assert (5 - bench.q >= 0).terms == (Affine((("q", -1),), 5),)
    assert str(both.terms[1]) == "- 2*k + q + 2 >= 0"


def test_a_mask_over_a_further_dim_widens_the_result() -> None:
    bench = Bench()
    with bench.g.vector("v"):
        out = bench.g.let("out", where(bench.k <= bench.q, bench.y, 0.0))
    bench.g.output(out)
    assert bench.g.build().value("out").dims == ("q", "k")


def test_an_operator_shows_its_parameters() -> None:
    @operator
    def twice_of(size: int = 4, dtype: str = "float32") -> StageGraph:
        """Twice the input.

        More.
        """
        g = Graph("twice_of")
        g.dim("i", size)
        x = g.input("x", "i", dtype)
        with g.vector("v"):
            y = g.let("y", x * 2.0)
        g.output(y)
        return g.build()

    assert (twice_of.name, twice_of.doc) == ("twice_of", "Twice the input.")
    assert {n: p.annotation for n, p in twice_of.parameters.items()} == {"size": int, "dtype": str}
    assert twice_of(size=8).dim("i").size == 8


def test_nodes_check_themselves() -> None:
    with pytest.raises(FusionError, match="does not list the dims"):
        Value("v", ("q",), "float32", layout=(("k",),))
    with pytest.raises(FusionError, match="stage a is empty"):
        Stage("a", "cube", ())
    assert Dim("q", 3) == Dim("q", 3, (), 0)
