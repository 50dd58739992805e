"""The tile code of every operation: one TileLang line (or a few) for an operand list that is already in buffers of one shape.

Third reading of the vocabulary in `fusion/graph/ops.py`. A constant operand stays a number; tensors come as buffer names. Operations
that map to None have no tile code yet: a plan that would need it is refused.
"""

from __future__ import annotations

from collections.abc import Callable

Operand = str | float
TileCode = Callable[[str, list[Operand]], list[str]]


def _binary(name: str, commutes: bool) -> TileCode:
    def emit(out: str, args: list[Operand]) -> list[str]:
        a, b = args
        if not isinstance(a, str) and commutes:
            a, b = b, a
        return [f"T.tile.{name}({out}, {a}, {b})"]

    return emit


def difference(out: str, args: list[Operand]) -> list[str]:
    a, b = args
    if not isinstance(b, str):
        return [f"T.tile.add({out}, {a}, {-b})"]
    if not isinstance(a, str):
        return [f"T.tile.mul({out}, {b}, {-1 if isinstance(a, int) else -1.0})", f"T.tile.add({out}, {out}, {a})"]
    return [f"T.tile.sub({out}, {a}, {b})"]


def _div(out: str, args: list[Operand]) -> list[str]:
    a, b = args
    if not isinstance(b, str):
        return [f"T.tile.mul({out}, {a}, {1.0 / b})"]
    return [f"T.tile.div({out}, {a}, {b})"]


def _unary(name: str) -> TileCode:
    def emit(out: str, args: list[Operand]) -> list[str]:
        return [f"T.tile.{name}({out}, {args[0]})"]

    return emit


def _by_place(out: str, args: list[Operand]) -> list[str]:
    raise AssertionError(f"{out}, {args}: written by vector.py or cube.py, which know the tile's place")


_FLOATS = ("float32", "float16", "bool")
_MORE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("add", "sub", "mul", "max", "min", "ge", "lt", "index"), ("int32",)),
    **dict.fromkeys(("where", "select"), ("int32", "bfloat16")),
    **dict.fromkeys(("cast", "gather"), ("int32", "bfloat16", "int8")),
    "copy": ("bfloat16",),
    "topk": ("bfloat16",),
    "topk_index": ("int32", "bfloat16"),
}


def allowed_dtypes(fn: str) -> tuple[str, ...]:
    """The dtypes in which an operation can be computed: the Vector unit's floats, and what some operations take beside them."""
    return (*_FLOATS, *_MORE.get(fn, ()))


TILE_OPS: dict[str, TileCode | None] = {
    "add": _binary("add", True),
    "sub": difference,
    "mul": _binary("mul", True),
    "div": _div,
    "max": _binary("max", True),
    "min": _binary("min", True),
    "exp": _unary("exp"),
    "log": _unary("ln"),
    "sqrt": _unary("sqrt"),
    "rsqrt": _by_place,
    "abs": _unary("abs"),
    "relu": _unary("relu"),
    "sigmoid": _by_place,
    "copy": _by_place,
    "cast": _by_place,
    "where": _by_place,
    "select": _by_place,
    "ge": _by_place,
    "lt": _by_place,
    "sum": _by_place,
    "amax": _by_place,
    "amin": _by_place,
    "contract": _by_place,
    "index": _by_place,
    "gather": _by_place,
    "scatter_add": None,
    "topk": _by_place,
    "topk_index": _by_place,
}
