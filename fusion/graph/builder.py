"""Graph: the builder that operator functions use, and the `operator` decorator that makes them findable."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, ParamSpec

from fusion.errors import FusionError, did_you_mean
from fusion.graph import typing_rules
from fusion.graph.expr import Expr, Index, dims_of, require_expr, require_named
from fusion.graph.stagegraph import StageGraph
from fusion.graph.types import Carry, Dim, Op, Operand, Stage, Unit, Value

P = ParamSpec("P")


@dataclass
class _Open:
    """The stage being written."""

    name: str
    unit: Unit
    scan: str
    loop: int
    ops: list[Op] = field(default_factory=list[Op])


class Graph:
    """Collects dims, values and stages, checks each where it is written, and `build`s a StageGraph."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._dims: dict[str, Dim] = {}
        self._values: dict[str, Value] = {}
        self._stages: list[Stage] = []
        self._carries: list[Carry] = []
        self._open: _Open | None = None
        self._scan = ""
        self._loops: dict[str, int] = {}

    def dim(self, name: str, size: int, *, tiles: tuple[int, ...] = (), step: int = 0) -> Index:
        """Declares a dim; `tiles` are the block sizes to choose from, `step=1` makes scans along it go one index at a time."""
        if name in self._dims:
            raise FusionError(f"dim {name} is declared twice", where=self.name)
        self._dims[name] = Dim(name, size, tiles, step)
        return Index(((name, 1),))

    def input(self, name: str, layout: str, dtype: str, *, after: str = "") -> Expr:
        """An input tensor; `layout` is like `b (n g) q d`. `after` names outputs that exist on the host before this input does."""
        axes = tuple(tuple((a or b).split()) for a, b in re.findall(r"\(([^)]*)\)|(\S+)", layout))
        dims = tuple(d for axis in axes for d in axis)
        return self._declare(Value(name, dims, dtype, "input", axes, dims_of(after)))

    def output(self, value: Expr, layout: str = "") -> None:
        """Marks a value as a result of the operator, with the layout that the caller gets."""
        old = self._values[require_named(value, f"{self.name}: output").name]
        axes = tuple(tuple((a or b).split()) for a, b in re.findall(r"\(([^)]*)\)|(\S+)", layout)) or old.layout
        dims = tuple(d for axis in axes for d in axis)
        if sorted(dims) != sorted(old.dims):
            raise FusionError(f"output {value.name} has dims {' '.join(old.dims)}, the layout names {' '.join(dims)}", where=self.name)
        self._values[value.name] = Value(value.name, dims, old.dtype, "output", axes)

    @contextmanager
    def cube(self, name: str) -> Generator[None, None, None]:
        """A stage for the Cube unit: contractions."""
        with self._stage(name, "cube"):
            yield

    @contextmanager
    def vector(self, name: str) -> Generator[None, None, None]:
        """A stage for the Vector unit: everything but contractions."""
        with self._stage(name, "vector"):
            yield

    @contextmanager
    def _stage(self, name: str, unit: Unit) -> Generator[None, None, None]:
        if self._open:
            raise FusionError(f"stage {name} is opened inside of {self._open.name}", remedy="close one stage before the next")
        self._open = _Open(name, unit, self._scan, self._loops.get(self._scan, 0))
        yield
        done, self._open = self._open, None
        if any(s.name == name for s in self._stages):
            raise FusionError(f"stage {name} is declared twice", where=self.name)
        self._stages.append(Stage(done.name, done.unit, tuple(done.ops), done.scan, done.loop))

    @contextmanager
    def scan(self, dim: str) -> Generator[None, None, None]:
        """Stages inside run in steps along `dim`; reductions over it are over the step, `state`/`carry` pass values on."""
        if self._scan:
            raise FusionError(f"scan along {dim} inside of a scan along {self._scan}", remedy="scans do not nest")
        if dim not in self._dims:
            raise FusionError(f"scan along the undeclared dim {dim!r}", where=self.name, remedy=did_you_mean(dim, self._dims))
        if self._open:
            raise FusionError(f"scan along {dim} inside of stage {self._open.name}", remedy="open the stages inside of the scan")
        self._scan = dim
        self._loops[dim] = self._loops.get(dim, -1) + 1
        yield
        self._scan = ""

    def state(self, name: str, dims: str, init: Expr | float, dtype: str = "float32") -> Expr:
        """A value that a step reads as the step before it left it; the first step reads `init`."""
        if not self._scan:
            raise FusionError(f"state {name} outside of a scan", remedy="declare it inside `with g.scan(dim):`")
        value = self._declare(Value(name, dims_of(dims), dtype))
        start: Operand = require_named(init, f"{self.name}: state {name}").name if isinstance(init, Expr) else float(init)
        self._carries.append(Carry(name, "", start, self._scan))
        return value

    def carry(self, state: Expr, to: Expr) -> None:
        """The step leaves `to` as the next step's `state`."""
        require_named(to, f"{self.name}: carry of {require_named(state, f'{self.name}: carry').name}")
        found = [i for i, c in enumerate(self._carries) if c.state == state.name]
        if not found:
            raise FusionError(f"{state.name} is not a state", where=self.name, remedy="declare it with g.state(...)")
        old = self._carries[found[0]]
        self._carries[found[0]] = Carry(old.state, to.name, old.init, old.along)

    def let(self, name: str, expr: Expr) -> Expr:
        """Writes the expression into the open stage and gives its value a name."""
        if self._open is None:
            raise FusionError(
                f"{name} is assigned outside of a stage", where=self.name, remedy="use `with g.cube(...)` or `with g.vector(...)`"
            )
        if not require_expr(expr, f"{self.name}.{self._open.name}: {name}").fn:
            expr = Expr(fn="copy", args=(expr,))
        self._emit(self._open, name, expr, name, [0])
        return Expr(name=name)

    def _emit(self, stage: _Open, out: str, expr: Expr, root: str, counter: list[int]) -> None:
        args: list[Operand] = []
        for a in expr.args:
            if not isinstance(a, Expr):
                args.append(float(a))
            elif a.fn:
                counter[0] += 1
                inner = f"{root}__{counter[0]}"
                self._emit(stage, inner, a, root, counter)
                args.append(inner)
            else:
                args.append(a.name)
        op = Op(expr.fn, out, tuple(args), expr.over, expr.where, expr.attr)
        self._declare(typing_rules.result(op, self._values, self._dims, f"{self.name}.{stage.name}"))
        stage.ops.append(op)

    def _declare(self, value: Value) -> Expr:
        if value.name in self._values:
            raise FusionError(
                f"value {value.name} is assigned twice", where=self.name, remedy="values are single assignment: use a new name"
            )
        for d in value.dims:
            if d not in self._dims:
                raise FusionError(f"value {value.name} uses the undeclared dim {d!r}", where=self.name)
        self._values[value.name] = value
        return Expr(name=value.name)

    def build(self) -> StageGraph:
        """The finished graph; raises FusionError with the invariant that fails."""
        from fusion.graph.verify import verify

        graph = StageGraph(self.name, tuple(self._dims.values()), tuple(self._values.values()), tuple(self._stages), tuple(self._carries))
        verify(graph)
        return graph


@dataclass(frozen=True)
class Operator(Generic[P]):
    """A function from typed, defaulted parameters to a StageGraph."""

    build: Callable[P, StageGraph]

    @property
    def name(self) -> str:
        return self.build.__name__

    @property
    def doc(self) -> str:
        """First line of the docstring."""
        return (inspect.getdoc(self.build) or "").split("\n")[0]

    @property
    def parameters(self) -> dict[str, inspect.Parameter]:
        return dict(inspect.signature(self.build, eval_str=True).parameters)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> StageGraph:
        return self.build(*args, **kwargs)


def operator(function: Callable[P, StageGraph]) -> Operator[P]:
    """Marks a function as an operator, so that the command line and `fusion-plan list` find it."""
    return Operator(function)
