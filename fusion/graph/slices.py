"""Gathers that are plain addressing: the index is a position plus a constant, the result a part of a tensor under another dim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusion.graph.stagegraph import StageGraph
    from fusion.graph.types import Op


@dataclass(frozen=True)
class Slice:
    """`source` along `dim` from `start` on, where the dim `into` takes the place of `dim`."""

    source: str
    dim: str
    into: str
    start: int = 0


def find_slices(graph: StageGraph) -> dict[str, Slice]:
    """All values that are slices, each within the bounds of its source."""
    ops = {op.out: op for s in graph.stages for op in s.body}
    found: dict[str, Slice] = {}
    for op in (op for op in ops.values() if op.fn == "gather"):
        at = _position(ops, op.args[1])
        if at is None or not isinstance(op.args[0], str):
            continue
        into, start = at
        if 0 <= start <= graph.dim(op.over[0]).size - graph.dim(into).size:
            found[op.out] = Slice(op.args[0], op.over[0], into, start)
    return found


@dataclass(frozen=True)
class Rows:
    """Rows of `source`: the dim `dim` is replaced by the dims of `index`. `part` takes a slice of the rows along a further dim."""

    source: str
    dim: str
    index: str
    part: Slice | None = None


def find_rows(graph: StageGraph) -> dict[str, Rows]:
    """All gathers by data. A slice before or behind one in the same stage is part of it: rows are read from where the source is."""
    slices, found = find_slices(graph), dict[str, Rows]()
    for stage in graph.stages:
        for op in (op for op in stage.body if op.fn == "gather"):
            source, part = str(op.args[0]), slices.get(op.out)
            inner = slices.get(source) if source in stage.writes else None
            before = found.get(source) if source in stage.writes else None
            if part is None and inner and inner.into != op.over[0]:
                found[op.out] = Rows(inner.source, op.over[0], str(op.args[1]), inner)
            elif part is None:
                found[op.out] = Rows(source, op.over[0], str(op.args[1]))
            elif before and before.part is None and part.dim in graph.value(before.source).dims:
                found[op.out] = replace(before, part=replace(part, source=before.source))
    return found


def _position(ops: Mapping[str, Op], value: object) -> tuple[str, int] | None:
    """The dim and the constant of `index + constant`; None for any other value."""
    op = ops.get(value) if isinstance(value, str) else None
    if op is None:
        return None
    if op.fn == "index":
        return op.over[0], 0
    constants = [a for a in op.args if not isinstance(a, str)]
    if op.fn not in ("add", "sub") or len(constants) != 1 or (op.fn == "sub" and op.args[0] is constants[0]):
        return None
    inner = _position(ops, op.reads[0])
    shift = int(constants[0]) * (1 if op.fn == "add" else -1)
    return (inner[0], inner[1] + shift) if inner and constants[0] == int(constants[0]) else None


def find_silent(graph: StageGraph, slices: Mapping[str, Slice], rows: Mapping[str, Rows]) -> frozenset[str]:
    """Positions that only say where slices are, and slices or rows that are only sliced or gathered from: nothing computes them."""
    ops = [op for s in graph.stages for op in s.body]
    by_name = {op.out: op for op in ops}
    whole = {**{r: found.source for r, found in rows.items()}, **{p: found.source for p, found in slices.items()}}
    passed = {str(op.args[0]) for op in ops if op.out in rows and op.args[0] in whole and rows[op.out].source != op.args[0]}
    silent = {out for out in by_name if (out in passed or _position(by_name, out)) and graph.value(out).role != "output"}

    def addresses(op: Op, read: str) -> bool:
        """Whether an operation reads a value only to know where something is."""
        if op.out in silent:
            return True
        if read in passed:
            return op.out in rows and rows[op.out].source != read
        return op.fn == "gather" and read == op.args[1] and _position(by_name, read) is not None and (op.out in slices or op.out in rows)

    while True:
        loud = {r for op in ops for r in op.reads if r in silent and not addresses(op, r)}
        if not loud:
            return frozenset(silent)
        silent -= loud
