"""How the two Vector cores of a block share its tiles: by one dim for each group of operations that pass tiles to each other in UB."""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from fusion.graph import StageGraph
from fusion.graph.ops import OPS
from fusion.plan.tiling import COMPARISONS, FRACTAL, REPEAT, Tiling

if TYPE_CHECKING:
    from fusion.plan.structure import Structure

MIN_SPLIT_TILE = 2  # rows are shared between two Vector cores if there are two


@lru_cache(maxsize=1024)
def size_class(tiling: Tiling) -> tuple[object, ...]:
    """All that `split` sees of tile sizes."""
    return tuple((t >= MIN_SPLIT_TILE, t % (2 * FRACTAL) == 0, t if _compares(tiling.graph) else 0) for _, t in tiling.tiles)


@cache
def _compares(graph: StageGraph) -> bool:
    return any(op.fn in COMPARISONS for s in graph.stages for op in s.body)


def clusters(s: Structure) -> tuple[tuple[str, ...], ...]:
    """Groups of Vector operations that pass tiles to each other in UB, as the values that they define."""
    units, group = s.units, dict[str, list[str]]()
    mine = [(out, op) for out, (_, op) in s.made.items() if units.get(out) == "vector"]
    for out, op in mine:
        group.setdefault(out, [out])
        for source in map(s.source, op.reads):
            if units.get(source) == "vector" and s.tiling.shape(source):
                joined, moved = group.setdefault(source, [source]), group[out]
                if joined is not moved:
                    joined += moved
                    group.update(dict.fromkeys(moved, joined))
    groups = {id(g): g for g in group.values()}.values()
    return tuple(tiled for g in groups if (tiled := tuple(v for v in g if v in s.tiling.worked)))


def split(s: Structure) -> dict[str, str] | None:
    """For every Vector value the dim whose tile the two Vector cores share, "" if both do all of it; None if some value allows none."""
    crossing = {h.value for h in s.handoffs} | set(s.stored)
    found: dict[str, str] = {}
    for members in s.clusters:
        dim = _split_dim(s, members)
        if dim is None and (_received(s, members) or any(o in crossing for o in members)):
            return None  # both cores may do all of it, unless tiles come from the Cube or go elsewhere
        found.update(dict.fromkeys(members, dim or ""))
    return found


def fills_repeats(tiling: Tiling, value: str, cores: int) -> bool:
    """Whether a tile shared by so many Vector cores is whole repeats, as comparing takes it."""
    return math.prod(tiling.tile(d) for d in tiling.shape(value)) // cores % REPEAT == 0


def _split_dim(s: Structure, members: tuple[str, ...]) -> str | None:
    dims = {d for o in members for d in s.graph.op_dims(s.made[o][1])}.intersection(d for d, _ in s.tiling.tiles)
    order = (d.name for d in s.graph.dims if d.name in dims)
    return next((d for d in order if s.tiling.tile(d) >= MIN_SPLIT_TILE and _can_split(s, d, members)), None)


def _can_split(s: Structure, dim: str, members: tuple[str, ...]) -> bool:
    """Every tile that leaves the group has the dim, as its first one, or is summed over it atomically."""
    leaving = set(s.stored) | {h.value for h in s.handoffs if h.direction == "vector->cube"}
    if s.tiling.tile(dim) % (2 * FRACTAL) and _is_column(s, dim, members):
        return False
    for out in members:
        _, op = s.made[out]
        if op.fn in COMPARISONS and dim in s.tiling.shape(out) and not fills_repeats(s.tiling, out, 2):
            return False
        if dim in op.over and not s.atomic(out) and not s.lane_dim(out):
            return False
        if OPS[op.fn].form == "topk" and dim == op.attr:
            return False
        if out in leaving and not s.atomic(out) and not s.lane_dim(out) and s.tiling.shape(out)[:1] != (dim,):
            return False
    return all(s.tiling.shape(r)[:1] == (dim,) for r in _received(s, members))


def _is_column(s: Structure, dim: str, members: tuple[str, ...]) -> bool:
    """Whether some tile has the dim along its rows, which must fill 32 bytes in UB."""
    shapes = (s.tiling.shape(v) for o in members for v in (o, *s.made[o][1].reads))
    return any(len(shape) == 2 and shape[1] == dim for shape in shapes)


def _received(s: Structure, members: tuple[str, ...]) -> list[str]:
    """Cube results that the group takes over."""
    return [r for o in members for r in s.made[o][1].reads if s.unit(r) == "cube"]
