"""The meaning of whole-tile operations: elementwise, comparisons, broadcasts, reductions, products; one entry an operation."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

import numpy as np

from fusion.check.golden.operands import Meaning, Meanings, Operands, Span
from fusion.check.golden.scalars import NotInterpreted
from fusion.check.golden.store import Array

OPS = Meanings()
meaning = OPS.entry


def _unary(function: Callable[[Array], Array]) -> Meaning:
    def run(o: Operands) -> None:
        n = o.count()
        o.span(0).write(function(o.span(1).read(n)))

    return run


def _binary(function: Callable[[Array, Array], Array]) -> Meaning:
    def run(o: Operands) -> None:
        n = o.count()
        o.span(0).write(function(o.span(1).read(n), o.span(2).read(n)))

    return run


def _scalar(function: Callable[[Array, Array], Array]) -> Meaning:
    """With a number, or with an element of a buffer."""

    def run(o: Operands) -> None:
        n, other = o.count(), o.args[2]
        number = other.read()[o.count(3)] if isinstance(other, Span) else other
        source = o.span(1).read(n)
        o.span(0).write(function(source, np.asarray(number).astype(source.dtype)))

    return run


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


UNARY: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp,
    "ln": np.log,
    "abs": np.abs,
    "reciprocal": lambda x: 1 / x,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": _sigmoid,
    "silu": lambda x: x * _sigmoid(x),
    "sin": np.sin,
    "cos": np.cos,
    "bitwise_not": np.bitwise_not,
}
BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "max": np.maximum,
    "min": np.minimum,
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
}
OPS.update({f"ascend_{name}": _unary(function) for name, function in UNARY.items()})
OPS.update({f"ascend_{name}": _binary(function) for name, function in BINARY.items()})
OPS.update({f"ascend_{name}s": _scalar(function) for name, function in BINARY.items()})
OPS["ascend_bitwise_lshift"] = _scalar(np.left_shift)
OPS["ascend_bitwise_rshift"] = _scalar(np.right_shift)
OPS["ascend_leaky_relu"] = _scalar(lambda a, b: np.where(a > 0, a, a * b))


@meaning("axpy")
def _axpy(o: Operands) -> None:
    """dst += a * src"""
    n = o.count()
    source = o.span(1).read(n)
    o.span(0).write(o.span(0).read(n) + source * np.asarray(o.number(2)).astype(source.dtype))


@meaning("mul_add_dst")
def _mul_add_dst(o: Operands) -> None:
    """dst = a * b + dst"""
    n = o.count()
    o.span(0).write(o.span(1).read(n) * o.span(2).read(n) + o.span(0).read(n))


@meaning("pow")
def _pow(o: Operands) -> None:
    o.span(0).write(np.power(o.span(1).read(), o.span(2).read()))


@meaning("bitwise_xor")
def _xor(o: Operands) -> None:
    o.span(0).write(np.bitwise_xor(o.span(1).read(), o.span(2).read()))


@meaning("fill")
def _fill(o: Operands) -> None:
    o.span(1).write(np.full(o.count(), o.number(2)))


@meaning("arith_progression")
def _progression(o: Operands) -> None:
    n = o.count()
    o.span(1).write(o.number(2) + o.number(3) * np.arange(n))


@meaning("createvecindex")
def _index(o: Operands) -> None:
    o.span(1).write(o.number(2) + np.arange(o.count()))


ROUNDING: dict[str, Callable[[Array], Array]] = {
    "CAST_RINT": np.rint,
    "CAST_FLOOR": np.floor,
    "CAST_CEIL": np.ceil,
    "CAST_TRUNC": np.trunc,
    "CAST_ROUND": lambda x: np.trunc(x + np.copysign(0.5, x)),
    "CAST_NONE": lambda x: x,
}


@meaning("cast")
def _cast(o: Operands) -> None:
    n, mode = o.count(3), o.text(2)
    values = o.span(1).read(n)
    if mode not in ROUNDING:
        raise NotInterpreted(f"cast {mode}")
    whole = o.span(0).tile.data.dtype.kind in "iu" and values.dtype.kind == "f"
    o.span(0).write(ROUNDING["CAST_RINT" if mode == "CAST_NONE" else mode](values) if whole else values)


@meaning("round")
def _round(o: Operands) -> None:
    o.span(0).write(np.rint(o.span(1).read(o.count())))


@meaning("clamp_max")
def _clamp_max(o: Operands) -> None:
    o.span(1).write(np.minimum(o.span(2).read(o.count()), o.number(3)))


@meaning("clamp_min")
def _clamp_min(o: Operands) -> None:
    o.span(1).write(np.maximum(o.span(2).read(o.count()), o.number(3)))


@meaning("clamp")
def _clamp(o: Operands) -> None:
    o.span(1).write(np.clip(o.span(2).read(o.count()), o.number(3), o.number(4)))


COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "LT": np.less,
    "LE": np.less_equal,
}


def _write_bits(span: Span, bits: Array) -> None:
    """One bit an element, the first in the lowest bit of the first byte."""
    raw = span.raw()
    packed = np.packbits(bits.astype(np.uint8), bitorder="little")
    raw[: packed.size] = packed


def _read_bits(span: Span, count: int) -> Array:
    return np.unpackbits(span.raw(), bitorder="little")[:count].astype(bool)


@meaning("compare")
def _compare(o: Operands) -> None:
    a, b = o.span(1), o.span(2)
    n = min(a.extent, b.extent)
    _write_bits(o.span(0), COMPARISONS[o.text(3)](a.read(n), b.read(n)))


@meaning("compare_scalar")
def _compare_scalar(o: Operands) -> None:
    a, other = o.span(1), o.args[2]
    number, mode = (other.read()[o.count(3)], o.text(4)) if isinstance(other, Span) else (o.number(2), o.text(3))
    source = a.read()
    _write_bits(o.span(0), COMPARISONS[mode](source, np.asarray(number).astype(source.dtype)))


@meaning("select")
def _select(o: Operands) -> None:
    kind = o.count(3)
    mode, n = (o.text(5), o.count(6)) if kind else (o.text(6), o.count(7))
    if mode == "VSEL_CMPMASK_SPR":
        raise NotInterpreted("select VSEL_CMPMASK_SPR")
    mask, a = _read_bits(o.span(1), n), o.span(2).read(n)
    b = o.span(4).read(n) if kind == 2 else np.asarray(o.number(4)) if kind == 1 else o.span(4).read()[o.count(5)]
    o.span(0).write(np.where(mask, a, b))


@meaning("broadcast")
def _broadcast(o: Operands) -> None:
    rank = o.count(3)
    sizes = [int(cast("float", size)) for size in o.args[4:]]
    target, source = sizes[:rank], sizes[rank : 2 * rank]
    values = o.span(2).read(int(np.prod(source))).reshape(source)
    o.span(1).write(np.broadcast_to(values, target))


@meaning("transpose")
def _transpose(o: Operands) -> None:
    source = o.span(1)
    o.span(0).write(source.read().reshape(source.tile.shape[-2:]).T)


@meaning("gather")
def _gather(o: Operands) -> None:
    """dst[i] = src[(base + offset[i]) / size], offsets in bytes"""
    n = o.count(4)
    source = o.span(1)
    at = (o.span(2).read(n).astype(np.int64) + o.count(3)) // source.tile.data.itemsize
    o.span(0).write(source.read()[at])


def _row_expand(function: Callable[[Array, Array], Array]) -> Meaning:
    """dst[i, j] = a[i, j] op b[i]"""

    def run(o: Operands) -> None:
        first = 1 if isinstance(o.args[0], str) else 0
        source, rows = o.span(first + 1), o.span(first + 2)
        n = rows.extent
        table = source.read().reshape(n, -1)
        o.span(first).write(function(table, rows.read().reshape(n, 1)))

    return run


for _name in ("mul", "sub", "div"):
    OPS[f"ascend_row_expand_{_name}"] = OPS[f"ascend_row_expand_{_name}_experiment"] = _row_expand(BINARY[_name])

REDUCERS: dict[str, Callable[..., Array]] = {"reduce_sum": np.sum, "reduce_max": np.max, "reduce_min": np.min}
JOINERS: dict[str, Callable[[Array, Array], Array]] = {"reduce_sum": BINARY["add"], "reduce_max": np.maximum, "reduce_min": np.minimum}


@meaning("reduce")
def _reduce(o: Operands) -> None:
    found = re.match(r"(\w+)<[\w ]+, (\d+), (\d+), (-?\d+)>", o.text(0))
    if not found or found[1] not in REDUCERS:
        raise NotInterpreted(o.text(0))
    rows, columns, dim = int(found[2]), int(found[3]), int(found[4])
    source = o.span(2)
    pitch = source.tile.shape[-1] if len(source.tile.shape) > 1 else columns
    table = source.tile.data[source.start :][: (rows - 1) * pitch + columns]
    table = np.lib.stride_tricks.as_strided(table, (rows, columns), (pitch * table.itemsize, table.itemsize))
    result = REDUCERS[found[1]](table.astype(np.float32) if table.dtype == np.float16 else table, axis=0 if dim == 0 else 1)
    out = o.span(1)
    out.write(result if o.args[3] else JOINERS[found[1]](out.read(result.size), result))


def _product(a: Array, b: Array) -> Array:
    kind = np.int32 if a.dtype.kind in "iu" else np.float32
    return cast("Array", a.astype(kind) @ b.astype(kind))


def _accumulate(out: Span, product: Array, init: bool) -> None:
    out.write(product if init else out.read(product.size).reshape(product.shape) + product)


@meaning("gemm_v0")
def _gemm(o: Operands) -> None:
    found = re.match(r"gemm_v0<[\w ]+, [\w ]+, (\d+), (\d+), (\d+), (true|false), (true|false)>", o.text(0))
    if not found:
        raise NotInterpreted(o.text(0))
    m, n, k = (int(found[i]) for i in (1, 2, 3))
    a, b = o.span(1).read(m * k), o.span(2).read(k * n)
    a = a.reshape(k, m).T if found[4] == "true" else a.reshape(m, k)
    b = b.reshape(n, k).T if found[5] == "true" else b.reshape(k, n)
    _accumulate(o.span(3), _product(a, b), bool(o.args[4]))


@meaning("mma")
def _mma(o: Operands) -> None:
    found = re.match(r"mma<[\w ]+, [\w ]+, (\d+), (\d+)>", o.text(0))
    if not found:
        raise NotInterpreted(o.text(0))
    m, n, k = int(found[1]), int(found[2]), o.count(5)
    _accumulate(o.span(3), _product(o.span(1).read(m * k).reshape(m, k), o.span(2).read(k * n).reshape(k, n)), bool(o.args[4]))
