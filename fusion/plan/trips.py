"""How many iterations a task really runs, with the loops bounded by the masks."""

from __future__ import annotations

from fusion.plan.masks import tile_range
from fusion.plan.structure import Structure


def _counts(structure: Structure, loop: str) -> list[int]:
    """Iterations of one loop, for every tile of the dim that bounds it."""
    bounds = structure.bounds[loop]
    dims = sorted({d for b in bounds for d, _ in b.starts})
    if len(dims) != 1:
        return [structure.tiling.trips(loop)]
    tile = structure.tiling.tile(dims[0])
    ranges = (tile_range(structure.tiling, bounds, loop, {dims[0]: i * tile}) for i in range(structure.tiling.trips(dims[0])))
    return [high - low for low, high in ranges]


def visited(structure: Structure) -> float:
    """Average number of iterations of all loops in one task."""
    total = 1.0
    for loop in structure.loops:
        counts = _counts(structure, loop)
        total *= sum(counts) / len(counts)
    return total


def most_visited(structure: Structure) -> int:
    """The largest number of iterations of all loops in one task."""
    total = 1
    for loop in structure.loops:
        total *= max(_counts(structure, loop))
    return total
