"""How many iterations a task really runs, with the loops bounded by the masks."""

from __future__ import annotations

from functools import cache

from fusion.plan.masks import Bound, tile_range
from fusion.plan.structure import Structure
from fusion.plan.tiling import Tiling


@cache
def _counts(tiling: Tiling, bounds: tuple[Bound, ...], loop: str) -> tuple[float, int]:
    """Average and largest number of iterations of one loop, over the tiles of the dim that bounds it."""
    dims = sorted({d for b in bounds for d, _ in b.starts})
    if len(dims) != 1:
        return float(tiling.trips(loop)), tiling.trips(loop)
    tile = tiling.tile(dims[0])
    ranges = (tile_range(tiling, bounds, loop, {dims[0]: i * tile}) for i in range(tiling.trips(dims[0])))
    counts = [high - low for low, high in ranges]
    return sum(counts) / len(counts), max(counts)


def visited(structure: Structure) -> float:
    """Average number of iterations of all loops in one task."""
    total = 1.0
    for loop in structure.loops:
        total *= _counts(structure.tiling, structure.bounds[loop], loop)[0]
    return total


def most_visited(structure: Structure) -> int:
    """The largest number of iterations of all loops in one task."""
    total = 1
    for loop in structure.loops:
        total *= _counts(structure.tiling, structure.bounds[loop], loop)[1]
    return total
