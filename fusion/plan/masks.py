"""Which blocks a loop need not visit, worked out from the index conditions of the graph alone.

For one condition, suppose it is false everywhere on a tile. Then `where` gives its other operand, and constants fold: masked
probabilities are 0, products with them are 0, sums of them add nothing, a state keeps its value. What no stage needs then is dead,
and a loop whose whole body is dead may skip the tile. Nothing here knows about attention.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from fusion.graph import Affine, Op, StageGraph
from fusion.graph.types import Operand
from fusion.plan.tiling import Tiling

LOWEST = -1.0e29  # constants at or below stand for minus infinity: max ignores them, exp of them is 0


@dataclass(frozen=True)
class Const:
    value: float


@dataclass(frozen=True)
class Same:
    """Equal to a named value: a state that did not change."""

    name: str


Known = Const | Same | None


@cache
def conditions(graph: StageGraph) -> tuple[Affine, ...]:
    """All index conditions of the graph, each once, in order of appearance."""
    return tuple(dict.fromkeys(a for s in graph.stages for op in s.body for a in op.where))


def _fold(op: Op, args: list[Known], false: Affine) -> Known:
    if op.fn == "where":
        return args[1] if false in op.where else None
    if op.fn in ("cast", "copy", "sum", "amax", "amin", "relu"):
        return _unary(op.fn, args[0])
    if op.fn == "contract":
        return Const(0.0) if Const(0.0) in args else None
    if op.fn == "exp" and isinstance(args[0], Const):
        return Const(math.exp(max(args[0].value, -1e4)) if args[0].value > -1e4 else 0.0)
    return _binary(op.fn, args) if len(args) == 2 else None


def _unary(fn: str, x: Known) -> Known:
    if isinstance(x, Const):
        return Const(max(x.value, 0.0)) if fn == "relu" else x if fn != "sum" or x.value == 0 else None
    return x if fn in ("cast", "copy") else None


def _binary(fn: str, args: list[Known]) -> Known:
    x, y = args
    zero, one = Const(0.0), Const(1.0)
    if fn == "mul":
        if zero in (x, y):
            return zero
        return y if x == one else x if y == one else None
    if fn == "add" and zero in (x, y):
        return y if x == zero else x
    if fn == "sub":
        if isinstance(x, Same) and x == y:
            return zero
        if isinstance(x, Const) and x.value <= LOWEST:
            return x
        return x if y == zero else None
    if fn == "max":
        low = [a for a in args if isinstance(a, Const) and a.value <= LOWEST]
        return (y if x in low else x) if low else None
    if fn == "div" and x == zero:
        return zero
    return None


def folded(graph: StageGraph, false: Affine) -> dict[str, Known]:
    """What every value is known to be on a tile where the condition is false everywhere."""
    known: dict[str, Known] = {c.state: Same(c.state) for c in graph.carries}
    for stage in graph.stages:
        for op in stage.body:
            known[op.out] = _fold(op, [_operand(a, known) for a in op.args], false)
    return known


def _operand(arg: Operand, known: Mapping[str, Known]) -> Known:
    return known.get(arg) if isinstance(arg, str) else Const(arg)


@cache
def dead_ops(graph: StageGraph, false: Affine) -> frozenset[str]:
    """Values whose operation may be left out on a tile where the condition is false everywhere."""
    known = folded(graph, false)
    closed = {c.next for c in graph.carries if known.get(c.next) == Same(c.state)}
    needed: set[str] = {v.name for v in graph.outputs}
    dead: set[str] = set()
    for op in reversed([op for s in graph.stages for op in s.body]):
        over = set(op.over) & set(false.dims)
        unwanted = op.out not in needed and (set(false.dims) <= set(graph.op_dims(op)) or known[op.out] is not None)
        if op.out in closed or (over and _adds_nothing(op, known[op.out])) or unwanted:
            dead.add(op.out)
        else:
            needed.update(op.reads)  # emission folds no constants: what runs reads real tiles
    return frozenset(dead | _sums_of_nothing(graph, dead, known))


def _sums_of_nothing(graph: StageGraph, dead: set[str], known: Mapping[str, Known]) -> set[str]:
    """Values that are 0 because all of them that is computed is dead: the sum of two products of which a tile adds nothing to either."""
    found: set[str] = set()
    for op in (op for s in graph.stages for op in s.body if op.out not in dead and known[op.out] == Const(0.0)):
        made = [r for r in op.reads if r in known]
        if made and all(r in dead or r in found for r in made):
            found.add(op.out)
    return found


def _adds_nothing(op: Op, result: Known) -> bool:
    """Whether a tile's part of a reduction leaves the result as it is."""
    if op.fn == "amax":
        return isinstance(result, Const) and result.value <= LOWEST
    return op.fn in ("sum", "contract") and result == Const(0.0)


def skippable(graph: StageGraph, outs: frozenset[str]) -> tuple[Affine, ...]:
    """Conditions such that a tile on which one of them is false everywhere changes nothing that the operations `outs` leave behind."""
    return tuple(c for c in conditions(graph) if outs <= dead_ops(graph, c))


@dataclass(frozen=True)
class Bound:
    """One condition as a bound on the tile index of a loop: `coefficient * index + rest >= 0` must be possible on the tile."""

    coefficient: int
    starts: tuple[tuple[str, int], ...]  # other dims whose tile start enters, with their coefficient
    const: int


def bound(tiling: Tiling, condition: Affine, loop: str, fixed: frozenset[str]) -> Bound | None:
    """The bound on `loop` where the dims in `fixed` have a known tile; None if the condition does not name the loop."""
    terms = dict(condition.terms)
    if loop not in terms:
        return None
    starts: list[tuple[str, int]] = []
    const = condition.const
    for dim, coefficient in condition.terms:
        if dim == loop:
            continue
        size = tiling.graph.dim(dim).size
        if dim in fixed:
            starts.append((dim, coefficient))
            const += coefficient * (tiling.tile(dim) - 1) if coefficient > 0 else 0
        else:
            const += coefficient * (size - 1) if coefficient > 0 else 0
    return Bound(terms[loop], tuple(starts), const)


def tile_range(tiling: Tiling, bounds: tuple[Bound, ...], loop: str, starts: Mapping[str, int]) -> tuple[int, int]:
    """First and one past last tile of the loop that must be visited, for given tile starts (at least one tile)."""
    tile, low, high = tiling.tile(loop), 0, tiling.trips(loop)
    for b in bounds:
        rest = b.const + sum(c * starts[d] for d, c in b.starts)
        if b.coefficient > 0:
            low = max(low, -((rest + b.coefficient * (tile - 1)) // (b.coefficient * tile)))
        else:
            high = min(high, rest // (-b.coefficient * tile) + 1)
    low = min(low, tiling.trips(loop) - 1)
    return low, max(high, low + 1)


def _most(tiling: Tiling, condition: Affine, best: frozenset[str]) -> int:
    """The condition's greatest value on a tile: the tile that suits it best along the dims `best`, worst along the others."""
    most = condition.const
    for dim, coefficient in condition.terms:
        tile, size = tiling.tile(dim), tiling.graph.dim(dim).size
        low, high = (min(tile, size) - 1, size - 1) if coefficient > 0 else ((tiling.trips(dim) - 1) * tile, 0)
        most += coefficient * (high if dim in best else low)
    return most


@cache
def partly_kept(tiling: Tiling, value: str) -> tuple[Affine, ...]:
    """Conditions outside of which nothing needs the value, if they rule out whole tiles of it: kernels may skip those."""
    dims = set(tiling.graph.value(value).dims)
    found = (c for c in skippable(tiling.graph, frozenset({value})) if set(c.dims) <= dims)
    return tuple(c for c in found if _most(tiling, c, frozenset()) < 0)


def leaves_something(tiling: Tiling, condition: Affine, loop: str) -> bool:
    """Whether a loop bounded by the condition has a tile to visit, wherever the other dims are."""
    return _most(tiling, condition, frozenset({loop})) >= 0
