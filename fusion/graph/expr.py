"""What an operator's author writes inside a stage: expressions over values, and conditions over dim indices."""

from __future__ import annotations

from dataclasses import dataclass

from fusion.errors import FusionError
from fusion.graph.types import Affine


@dataclass(frozen=True)
class Condition:
    """A conjunction of affine index conditions; `a & b` joins two."""

    terms: tuple[Affine, ...] = ()

    def __and__(self, other: Condition) -> Condition:
        return Condition(self.terms + other.terms)

    def __bool__(self) -> bool:
        raise FusionError("a condition over dim indices has no truth value", remedy="join conditions with &, one comparison each")


class Index:
    """An affine expression over dim indices; comparing two gives a Condition. A dim declared in a graph is the simplest one."""

    def __init__(self, terms: tuple[tuple[str, int], ...], const: int = 0) -> None:
        self.affine = Affine(terms, const)

    def _combine(self, other: Index | int, sign: int) -> Index:
        if isinstance(other, int):
            return Index(self.affine.terms, self.affine.const + sign * other)
        return Index(self.affine.terms + tuple((d, sign * c) for d, c in other.affine.terms), self.affine.const + sign * other.affine.const)

    def __add__(self, other: Index | int) -> Index:
        return self._combine(other, 1)

    def __radd__(self, other: int) -> Index:
        return self + other

    def __rsub__(self, other: int) -> Index:
        return self * -1 + other

    def __rmul__(self, factor: int) -> Index:
        return self * factor

    def __sub__(self, other: Index | int) -> Index:
        return self._combine(other, -1)

    def __mul__(self, factor: int) -> Index:
        return Index(tuple((d, c * factor) for d, c in self.affine.terms), self.affine.const * factor)

    def __ge__(self, other: Index | int) -> Condition:
        return Condition(((self - other).affine,))

    def __gt__(self, other: Index | int) -> Condition:
        return self >= (other + 1)

    def __le__(self, other: Index | int) -> Condition:
        return Condition((((self - other) * -1).affine,))

    def __lt__(self, other: Index | int) -> Condition:
        return self <= other - 1


@dataclass(frozen=True)
class Expr:
    """An operation to be written, or (with `fn` empty) the value called `name`."""

    name: str = ""
    fn: str = ""
    args: tuple[Expr | float, ...] = ()
    over: tuple[str, ...] = ()
    where: tuple[Affine, ...] = ()
    attr: str = ""

    def __add__(self, other: Expr | float) -> Expr:
        return _binary("add", self, other)

    def __radd__(self, other: float) -> Expr:
        return _binary("add", self, other)

    def __sub__(self, other: Expr | float) -> Expr:
        return _binary("sub", self, other) if isinstance(other, Expr) else _binary("add", self, -other)

    def __rsub__(self, other: float) -> Expr:
        return _binary("add", _binary("mul", self, -1.0), other)

    def __mul__(self, other: Expr | float) -> Expr:
        return _binary("mul", self, other)

    def __rmul__(self, other: float) -> Expr:
        return _binary("mul", self, other)

    def __truediv__(self, other: Expr | float) -> Expr:
        return _binary("div", self, other) if isinstance(other, Expr) else _binary("mul", self, 1.0 / other)

    def __rtruediv__(self, other: float) -> Expr:
        return Expr(fn="div", args=(float(other), self))

    def __neg__(self) -> Expr:
        return _binary("mul", self, -1.0)

    def __ge__(self, other: Expr | float) -> Expr:
        return _binary("ge", self, other)

    def __lt__(self, other: Expr | float) -> Expr:
        return _binary("lt", self, other)

    def __gt__(self, other: Expr | float) -> Expr:
        return other < self if isinstance(other, Expr) else -self < -other

    def __le__(self, other: Expr | float) -> Expr:
        return other >= self if isinstance(other, Expr) else -self >= -other

    def __bool__(self) -> bool:
        raise FusionError("the value of an expression is not known while the graph is written", remedy="use where(condition, x, y)")


def _binary(fn: str, x: Expr, y: Expr | float) -> Expr:
    return Expr(fn=fn, args=(x, y if isinstance(y, Expr) else float(y)))


def dims_of(text: str) -> tuple[str, ...]:
    """`"b q d"` as a tuple of names."""
    return tuple(text.split())


def exp(x: Expr) -> Expr:
    return Expr(fn="exp", args=(x,))


def log(x: Expr) -> Expr:
    return Expr(fn="log", args=(x,))


def sqrt(x: Expr) -> Expr:
    return Expr(fn="sqrt", args=(x,))


def rsqrt(x: Expr) -> Expr:
    return Expr(fn="rsqrt", args=(x,))


def absolute(x: Expr) -> Expr:
    return Expr(fn="abs", args=(x,))


def relu(x: Expr) -> Expr:
    return Expr(fn="relu", args=(x,))


def sigmoid(x: Expr) -> Expr:
    return Expr(fn="sigmoid", args=(x,))


def maximum(x: Expr, y: Expr | float) -> Expr:
    return _binary("max", x, y)


def minimum(x: Expr, y: Expr | float) -> Expr:
    return _binary("min", x, y)


def cast(x: Expr, dtype: str) -> Expr:
    """x rounded to dtype (nearest even)."""
    return Expr(fn="cast", args=(x,), attr=dtype)


def where(condition: Condition | Expr, x: Expr, otherwise: Expr | float) -> Expr:
    """x where the condition holds; the condition is over dim indices, or a value that is not 0 where it holds."""
    y = otherwise if isinstance(otherwise, Expr) else float(otherwise)
    if isinstance(condition, Condition):
        return Expr(fn="where", args=(x, y), where=condition.terms)
    return Expr(fn="select", args=(condition, x, y))


def contract(x: Expr, y: Expr, over: str) -> Expr:
    """Sum of products over the dims in `over`, the other dims joined; only in a Cube stage. Accumulates in float32.

    `contract(a, b, ...) + contract(c, d, ...)` in one Cube stage accumulates both in one place.
    """
    return Expr(fn="contract", args=(x, y), over=dims_of(over))


def total(x: Expr, over: str) -> Expr:
    """Sum over dims."""
    return Expr(fn="sum", args=(x,), over=dims_of(over))


def largest(x: Expr, over: str) -> Expr:
    """Maximum over dims."""
    return Expr(fn="amax", args=(x,), over=dims_of(over))


def smallest(x: Expr, over: str) -> Expr:
    """Minimum over dims."""
    return Expr(fn="amin", args=(x,), over=dims_of(over))


def expand(x: Expr, dims: str) -> Expr:
    """x repeated over further dims; `dims` lists all dims of the result."""
    return Expr(fn="copy", args=(x,), attr=dims)


def position(dim: str) -> Expr:
    """The index along a dim, as an int32 value."""
    return Expr(fn="index", over=(dim,))


def gather(x: Expr, index: Expr, dim: str) -> Expr:
    """Row reads: `dim` of x is replaced by the dims of `index`; positions outside the dim read as 0."""
    return Expr(fn="gather", args=(x, index), over=(dim,))


def part(x: Expr, dim: str, into: str, start: int = 0) -> Expr:
    """The slice of x along `dim` from `start`, as long as the dim `into` that takes its place; with equal sizes, a renaming."""
    return gather(x, position(into) + start if start else position(into), dim)


def scatter_add(x: Expr, index: Expr, over: str, into: str) -> Expr:
    """Row writes that add up: the dims `over` of x become the dim `into`, at the positions that `index` gives."""
    return Expr(fn="scatter_add", args=(x, index), over=dims_of(over), attr=into)


def topk(x: Expr, over: str, into: str) -> Expr:
    """The largest elements along `over`, in falling order, as many as the dim `into` has."""
    return Expr(fn="topk", args=(x,), over=(over,), attr=into)


def topk_index(x: Expr, over: str, into: str) -> Expr:
    """Their positions along `over` (ties to the smaller position), int32."""
    return Expr(fn="topk_index", args=(x,), over=(over,), attr=into)


def require_expr(x: object, where_: str) -> Expr:
    """Checks an author's argument."""
    if not isinstance(x, Expr):
        raise FusionError(f"expected a value or an expression, got {type(x).__name__}", where=where_)
    return x


def require_named(x: object, where_: str) -> Expr:
    """Checks an author's argument that must be a value: an input, a state or what `let` returned."""
    if not isinstance(x, Expr) or not x.name:
        raise FusionError("expected a value, not an expression", where=where_, remedy="give it a name with g.let(...) first")
    return x
