"""Values of expressions: numbers, or arrays of them where a loop counter stands for all iterations of a T.Parallel at once."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np

from fusion.check import program as p
from fusion.check.golden.store import Array, Tile, array, rounded

Value: TypeAlias = "int | float | Array"
Names: TypeAlias = "Mapping[str, Value | Later]"
Find: TypeAlias = "Callable[[str], Tile]"


@dataclass(frozen=True)
class Later:
    """A let whose value uses a counter of a loop inside of it, as T.Persistent makes them: evaluated where it is used."""

    expr: p.Expr


class NotInterpreted(Exception):
    """Something that the interpreter has no meaning for."""


def _floor_divide(a: Array, b: Array) -> Array:
    return a // b if np.asarray(a).dtype.kind in "iu" else a / b


def _not(a: Array, _unused: Array) -> object:
    return np.logical_not(a)


def _reciprocal_root(x: Array) -> Array:
    return 1.0 / np.sqrt(x)


def _sigmoid(x: Array) -> Array:
    return 1.0 / (1.0 + np.exp(-x))


BINARY: dict[str, Callable[..., object]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _floor_divide,
    "//": operator.floordiv,
    "%": np.fmod,
    "mod": np.mod,
    "min": np.minimum,
    "max": np.maximum,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": _not,
}
FUNCTIONS: dict[str, Callable[..., object]] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": _reciprocal_root,
    "abs": np.abs,
    "fabs": np.abs,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "floor": np.floor,
    "ceil": np.ceil,
    "pow": np.power,
    "shift_left": np.left_shift,
    "shift_right": np.right_shift,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "sigmoid": _sigmoid,
}


def value(expr: p.Expr, names: Names, find: Find) -> Value:
    """The value of an expression with these variables and buffers."""
    match expr:
        case p.Const(value=number):
            return number
        case p.Name(name=name):
            if name not in names:
                raise NotInterpreted(f"{name} has no value")
            found = names[name]
            return value(found.expr, names, find) if isinstance(found, Later) else found
        case p.Binary(op=op, left=a, right=b, dtype=dtype):
            return _typed(BINARY[op](value(a, names, find), value(b, names, find)), dtype)
        case p.Cast(value=inner, dtype=dtype):
            return _typed(value(inner, names, find), dtype)
        case p.Choice(condition=condition, yes=yes, no=no):
            return _choice(value(condition, names, find), yes, no, names, find)
        case p.Load(buffer=buffer, indices=indices):
            tile = find(buffer)
            flat = flat_index(tile, indices, names, find)
            found = tile.data[np.clip(flat, 0, tile.data.size - 1)]
            return found if isinstance(flat, np.ndarray) else found.item()
        case p.Call(op="infinity", dtype=_):
            return float("inf")
        case p.Call(op=op, args=args, dtype=dtype) if op in FUNCTIONS:
            inputs = [_widened(value(argument, names, find)) for argument in args]
            return _typed(FUNCTIONS[op](*inputs), dtype)
        case p.Call(op=op):
            raise NotInterpreted(op)
        case _:
            raise NotInterpreted(p.show(expr))


def _choice(condition: Value, yes: p.Expr, no: p.Expr, names: Names, find: Find) -> Value:
    if isinstance(condition, np.ndarray):
        return np.where(condition, value(yes, names, find), value(no, names, find))
    return value(yes if condition else no, names, find)


def _widened(x: Value) -> Array:
    """Functions of half-precision values are computed in single precision, and rounded once."""
    found = array(x)
    return array(found.astype(np.float32)) if found.dtype == np.float16 else found


def _typed(result: object, dtype: str) -> Value:
    found = array(result)
    if found.ndim:
        return rounded(found, dtype) if dtype.startswith(("float", "bfloat")) else found
    return rounded(found, dtype).item() if dtype in ("float16", "bfloat16", "float32") else found.item()


def flat_index(tile: Tile, indices: tuple[p.Expr, ...], names: Names, find: Find) -> Value:
    """Row-major position of an element, or of an array of them."""
    at: Value = 0
    for size, index in zip(tile.shape, indices, strict=True):
        at = at * size + value(index, names, find)
    return at


def whole(expr: p.Expr, names: Names, find: Find) -> int:
    """The value of an expression that must be one whole number."""
    return int(cast("float", value(expr, names, find)))
