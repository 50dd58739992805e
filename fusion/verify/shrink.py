"""A small shape of the same operator, on which a plan can be run in seconds: still several tiles along every dim, and a tail."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fusion.errors import FusionError
from fusion.graph import Operator, StageGraph
from fusion.graph.ops import OPS
from fusion.plan.tiling import matrix_dims, whole_dims

BUDGET = 2e8  # multiply-accumulates that the simulator does in well under a second
TILE = 64
Parameters = dict[str, int | float | bool | str | None]


def work(graph: StageGraph) -> float:
    """Multiply-accumulates of all contractions, and a tenth of all Vector elements."""
    total = 0.0
    for op in (op for s in graph.stages for op in s.body):
        points = math.prod(graph.dim(d).size for d in graph.op_dims(op))
        total += points if OPS[op.fn].form == "contract" else 0.1 * points
    return total


def small_parameters(operator: Operator[...], values: Mapping[str, int | float | bool | str | None], budget: float = BUDGET) -> Parameters:
    """Parameters with which the operator is small enough to run.

    Halves integers: first what is walked index by index, then what has several tiles (and keeps several), then what is one tile.
    """
    given: Parameters = {n: p.default for n, p in operator.parameters.items()} | dict(values)
    now = given
    for least in (2, 1):
        while work(operator.build(**now)) > budget:
            smaller = _smaller(operator, now, least)
            if smaller is None:
                break
            now = smaller
    return now if now == given else _with_tail(operator, now)


def _build(operator: Operator[...], values: Parameters) -> StageGraph | None:
    try:
        return operator.build(**values)
    except FusionError:
        return None


def _integers(values: Parameters, least: int) -> list[tuple[int, str]]:
    return sorted(((v, n) for n, v in values.items() if isinstance(v, int) and not isinstance(v, bool) and v >= least), reverse=True)


def _smaller(operator: Operator[...], now: Parameters, least: int) -> Parameters | None:
    """The legal halving that changes least of what makes a run worth while; None if there is none."""
    before = operator.build(**now)
    found: list[tuple[int, int, Parameters]] = []
    for place, (value, name) in enumerate(_integers(now, 2)):
        tried = now | {name: value // 2}
        graph = _build(operator, tried)
        if graph and work(graph) < work(before):
            rank = _rank(before, graph, least)
            if rank is not None:
                found.append((rank, place, tried))
    return min(found, key=lambda f: f[:2])[2] if found else None


def _rank(before: StageGraph, after: StageGraph, least: int) -> int | None:
    """0 if only dims walked index by index shrink, 1 if dims with several tiles, 2 if single tiles; None if too little would be left."""
    matrix = matrix_dims(before)
    rank = 0
    for d in before.dims:
        size = after.dim(d.name).size
        if size == d.size:
            continue
        several = d.size > 2 * TILE
        rank = max(rank, 0 if d.name not in matrix else 1 if several else 2)
        floor = min(least, d.size) if d.name not in matrix else 2 * TILE + 1 if several else min(d.size, TILE)
        if size < floor:
            return None
    return rank


def _with_tail(operator: Operator[...], now: Parameters) -> Parameters:
    """The same with one number made odd, a quarter larger, if that leaves a tail in a dim with several tiles.

    A dim that must be one tile gets a tail by half its size and one more: a longer row might not fit.
    """
    before = operator.build(**now)
    for value, name in _integers(now, 2 * TILE):
        tried = now | {name: value + value // 4 + 1}
        graph = _build(operator, tried)
        if graph and any(graph.dim(d).size > before.dim(d).size for d in whole_dims(before)):
            tried = now | {name: value // 2 + 1}
            graph = _build(operator, tried)
        changed = [d for d in before.dims if graph and graph.dim(d.name).size != d.size]
        if graph and changed and all(d.name in matrix_dims(before) and d.size > TILE for d in changed):
            return tried
    return now
