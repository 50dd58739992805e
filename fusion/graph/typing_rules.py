"""Dims and dtype of an operation's result, from its operands: the language's type rules, one function a form."""

from __future__ import annotations

from collections.abc import Mapping

from fusion.errors import FusionError, did_you_mean
from fusion.graph.ops import OPS
from fusion.graph.types import DTYPE_BYTES, Dim, Op, Value
from fusion.words import count


def result(op: Op, values: Mapping[str, Value], dims: Mapping[str, Dim], where: str) -> Value:
    """The value that `op` defines. Raises FusionError for an unknown operation, operand, dim or a dtype mismatch."""
    spec = OPS.get(op.fn)
    if spec is None:
        raise FusionError(f"unknown operation {op.fn!r}", where=where, remedy=did_you_mean(op.fn, OPS))
    if len(op.args) != spec.arity:
        raise FusionError(f"{op.fn} takes {count(spec.arity, 'operand')}, got {len(op.args)}", where=where)
    for r in op.reads:
        if r not in values:
            raise FusionError(f"{op.out} reads {r!r}, which is not assigned before", where=where, remedy=did_you_mean(r, values))
    for d in (*op.over, *(d for a in op.where for d in a.dims)):
        if d not in dims:
            raise FusionError(f"{op.out} names the unknown dim {d!r}", where=where, remedy=did_you_mean(d, dims))
    if spec.form in ("topk", "scatter"):
        _check_target(op, dims, where)
    operands = tuple(values[a] for a in op.args if isinstance(a, str))
    found = _dims(op, operands, where)
    if OPS[op.fn].form in ("elementwise", "select") and not (op.fn == "copy" and op.attr):
        found = tuple(d for d in dims if d in found)  # in the order of declaration, whatever the order of the operands
    return Value(op.out, found, _dtype(op, operands, where))


def _check_target(op: Op, dims: Mapping[str, Dim], where: str) -> None:
    if op.attr not in dims:
        raise FusionError(f"{op.out} names the unknown dim {op.attr!r}", where=where, remedy=did_you_mean(op.attr, dims))
    if OPS[op.fn].form == "topk" and len(op.over) == 1 and dims[op.attr].size > dims[op.over[0]].size:
        source = dims[op.over[0]]
        raise FusionError(f"{op.out}: the largest {dims[op.attr].size} of {source.size} along {source.name}", where=where)


def _indexed(op: Op, operands: tuple[Value, ...], where: str) -> tuple[Value, Value]:
    """Source and index of a gather or scatter."""
    if len(operands) != 2 or operands[1].dtype not in ("int32", "int64"):
        raise FusionError(f"{op.out}: {op.fn} needs a value and an int32 or int64 index", where=where)
    return operands


def _union(operands: tuple[Value, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(d for v in operands for d in v.dims))


def _dims(op: Op, operands: tuple[Value, ...], where: str) -> tuple[str, ...]:
    form = OPS[op.fn].form
    dims = _union(operands)
    missing = [d for d in op.over if d not in dims]
    if form in ("contract", "reduce", "gather", "scatter", "topk") and (missing or not op.over or len(set(op.over)) < len(op.over)):
        what = f"{missing[0]}, which no operand has" if missing else "a dim twice" if op.over else "no dim"
        raise FusionError(f"{op.out}: {op.fn} over {what}", where=where)
    if form in ("contract", "reduce"):
        if form == "contract" and any(d not in v.dims for d in op.over for v in operands):
            raise FusionError(
                f"{op.out}: a contracted dim must be in both operands", where=where, remedy="sum the other operand in a Vector stage"
            )
        return tuple(d for d in dims if d not in op.over)
    if form == "index":
        return op.over
    if form == "gather":
        source, index = _indexed(op, operands, where)
        if op.over[0] in index.dims:
            raise FusionError(f"{op.out}: gather along {op.over[0]} by an index that has it too", where=where)
        at = source.dims.index(op.over[0])
        kept_before = tuple(d for d in source.dims[:at] if d not in index.dims)
        return (*kept_before, *index.dims, *(d for d in source.dims[at + 1 :] if d not in index.dims))
    if form == "scatter":
        source, index = _indexed(op, operands, where)
        if not set(op.over) <= set(index.dims) <= set(source.dims) or op.attr in source.dims:
            raise FusionError(f"{op.out}: scatter_add of {source.name} needs an index over its own dims, into a further dim", where=where)
        return tuple(dict.fromkeys(op.attr if d in op.over else d for d in source.dims))
    if form == "topk":
        return tuple(op.attr if d == op.over[0] else d for d in dims)
    if op.fn == "copy" and op.attr:
        if not set(dims) <= set(op.attr.split()):
            raise FusionError(f"{op.out}: expand of {' '.join(dims)} to {op.attr}", where=where, remedy="list all dims of the result")
        return tuple(op.attr.split())
    if op.fn == "where":
        return tuple(dict.fromkeys((*dims, *(d for a in op.where for d in a.dims))))
    return dims


def _dtype(op: Op, operands: tuple[Value, ...], where: str) -> str:
    if op.fn == "cast":
        if op.attr not in DTYPE_BYTES:
            raise FusionError(f"{op.out}: unknown dtype {op.attr!r}", where=where, remedy=did_you_mean(op.attr, DTYPE_BYTES))
        return op.attr
    if op.fn in ("index", "topk_index"):
        return "int32"
    if op.fn in ("ge", "lt"):
        return "bool"
    if op.fn == "gather":
        return operands[0].dtype
    if op.fn == "scatter_add":
        return operands[0].dtype
    data = operands[1:] if op.fn == "select" else operands
    kinds = tuple(dict.fromkeys(v.dtype for v in data))
    if len(kinds) > 1:
        raise FusionError(f"{op.out}: {op.fn} of {' and '.join(kinds)}", where=where, remedy="cast one operand first")
    if op.fn == "contract":
        return "int32" if kinds == ("int8",) else "float32"
    return kinds[0] if kinds else "float32"
