"""Gathers that are plain addressing: the index is a position plus a constant, the result a part of a tensor under another dim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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


def find_silent(graph: StageGraph, slices: Mapping[str, Slice]) -> frozenset[str]:
    """Positions that only say where slices are: nothing computes them."""
    ops = [op for s in graph.stages for op in s.body]
    silent = {op.out for op in ops if _position({o.out: o for o in ops}, op.out) and graph.value(op.out).role != "output"}
    while True:
        loud = {r for op in ops for r in op.reads if r in silent and not (op.out in silent or (op.out in slices and r == op.args[1]))}
        if not loud:
            return frozenset(silent)
        silent -= loud
