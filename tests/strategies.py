"""Hypothesis strategies: random small stage graphs, for property tests of the language, the planner and the passes."""

from __future__ import annotations

from typing import TypeVar

from hypothesis import strategies as st

from fusion.graph import Expr, Graph, StageGraph, absolute, cast, contract, largest, maximum, relu, sigmoid, total, where

T = TypeVar("T")
DIMS = ("b", "q", "k", "d")
HALF = "float16"
MOSTLY = st.sampled_from([True, True, True, False])


class _Writer:
    """Writes random stages into a graph and remembers each value's dims and dtype."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.graph = Graph("random")
        self.index = {d: self.graph.dim(d, draw(st.integers(2, 5), label=f"size of {d}")) for d in DIMS}
        self.dims: dict[str, tuple[str, ...]] = {}
        self.halves: list[Expr] = []
        self.floats: list[Expr] = []
        self.unread: dict[str, Expr] = {}
        self.count = 0

    def subset(self, dims: tuple[str, ...], least: int) -> tuple[str, ...]:
        chosen = self.draw(st.sets(st.sampled_from(dims), min_size=least))
        return tuple(d for d in DIMS if d in chosen)

    def add_input(self) -> None:
        dims = self.subset(DIMS, 2)
        name = f"in{len(self.dims)}"
        self.remember(self.graph.input(name, " ".join(dims), HALF), dims, HALF)

    def remember(self, value: Expr, dims: tuple[str, ...], dtype: str) -> None:
        self.dims[value.name] = dims
        (self.halves if dtype == HALF else self.floats).append(value)

    def pick(self, known: list[T], unread: list[T]) -> T:
        """One of the known, mostly of those that no stage has read yet, so that stages hang together."""
        return self.draw(st.sampled_from(unread if unread and self.draw(MOSTLY) else known))

    def read(self, value: Expr) -> Expr:
        self.unread.pop(value.name, None)
        return value

    def write(self, name: str, expr: Expr, dims: tuple[str, ...], dtype: str = "float32") -> Expr:
        value = self.graph.let(name, expr)
        self.remember(value, dims, dtype)
        self.unread[name] = value
        return value

    def cube(self) -> bool:
        """A contraction of two half values with a shared dim, one dim at least left over."""
        pairs = [(x, y) for x in self.halves for y in self.halves if x.name != y.name and self.can_contract(x, y)]
        if not pairs:
            return False
        x, y = self.pick(pairs, [p for p in pairs if p[0].name in self.unread or p[1].name in self.unread])
        shared = tuple(d for d in self.dims[x.name] if d in self.dims[y.name])
        union = tuple(d for d in DIMS if d in self.dims[x.name] + self.dims[y.name])
        over = self.subset(shared, 1)
        if len(over) == len(union):
            over = over[:-1]
        self.count += 1
        with self.graph.cube(f"c{self.count}"):
            expr = contract(self.read(x), self.read(y), over=" ".join(over))
            self.write(f"acc{self.count}", expr, tuple(d for d in union if d not in over))
        return True

    def can_contract(self, x: Expr, y: Expr) -> bool:
        a, b = set(self.dims[x.name]), set(self.dims[y.name])
        return bool(a & b) and len(a | b) > 1

    def vector(self) -> None:
        """One or two values combined or reduced; most stages round the result for the Cube."""
        self.count += 1
        with self.graph.vector(f"v{self.count}"):
            x, dims = self.operand()
            shape = self.draw(st.sampled_from(["unary", "binary", "mask", "reduce"]))
            if shape == "binary":
                y, more = self.operand()
                dims = tuple(d for d in DIMS if d in dims + more)
                x = self.draw(st.sampled_from([x + y, x * y, x - y, maximum(x, y)]))
            elif shape == "mask" and len(dims) > 1:
                x = where(self.index[dims[0]] <= self.index[dims[1]] + self.draw(st.integers(-1, 2)), x, 0.0)
            elif shape == "reduce" and len(dims) > 1:
                over = self.subset(dims[1:], 1)
                dims = tuple(d for d in dims if d not in over)
                x = self.draw(st.sampled_from([total, largest]))(x, over=" ".join(over))
            else:
                x = self.draw(st.sampled_from([relu(x), sigmoid(x), absolute(x), x * 0.5]))
            half = self.draw(MOSTLY)
            self.write(f"y{self.count}", cast(x, HALF) if half else x * 1.0, dims, HALF if half else "float32")

    def operand(self) -> tuple[Expr, tuple[str, ...]]:
        """A value as float32."""
        known = self.halves + self.floats
        x = self.pick(known, [v for v in known if v.name in self.unread])
        return (cast(self.read(x), "float32") if x in self.halves else self.read(x)), self.dims[x.name]

    def scan(self) -> None:
        """A sum that a scan carries along one dim of a value."""
        wide = [v for v in self.halves if len(self.dims[v.name]) > 1]
        x = self.pick(wide, [v for v in wide if v.name in self.unread])
        along = self.draw(st.sampled_from(self.dims[x.name]))
        dims = tuple(d for d in self.dims[x.name] if d != along)
        self.count += 1
        with self.graph.scan(along):
            state = self.graph.state(f"s{self.count}", " ".join(dims), init=self.draw(st.integers(-2, 2)))
            with self.graph.vector(f"v{self.count}"):
                step = state * 1.0 + total(cast(self.read(x), "float32"), over=along)
                self.graph.carry(state, self.write(f"y{self.count}", step, dims))


@st.composite
def stage_graphs(draw: st.DrawFn, min_stages: int = 1, max_stages: int = 7, scans: bool = False) -> StageGraph:
    """Connected or not, with every value that no stage reads as an output; Cube stages read half values only."""
    writer = _Writer(draw)
    for _ in range(draw(st.integers(2, 3), label="inputs")):
        writer.add_input()
    for _ in range(draw(st.integers(min_stages, max_stages), label="stages")):
        unrounded = any(v.name in writer.unread for v in writer.floats)
        kind = draw(st.sampled_from(["cube", "vector", "vector" if unrounded else "cube", *(["scan"] if scans else [])]))
        if kind == "scan":
            writer.scan()
        elif kind == "vector" or not writer.cube():
            writer.vector()
    for value in writer.unread.values():
        writer.graph.output(value)
    return writer.graph.build()
