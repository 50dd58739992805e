"""GM tensors as kernels see them: shapes, and the region text for a tile.

A caller's tensor keeps its layout up to the axis of its first tiled dim; all axes behind it are merged into one, so that a tile is
always rows of a matrix with one stride. A value between kernels that has two spread dims is stored tile by tile, only the tiles that
its loop bounds visit. A value without any tiled dim has a last axis of LANES copies, so that it loads as a vector.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fusion.graph import Value
from fusion.graph.slices import Rows, Slice
from fusion.plan.masks import Bound, bound, skippable, tile_range
from fusion.plan.tiling import Tiling

LANES = 128


@dataclass(frozen=True)
class Band:
    """Tile-packed storage: for a tile of `row`, tiles of `col` from the first visited one on, at most `width` of them."""

    row: str
    col: str
    width: int


def band(tiling: Tiling, value: Value) -> Band | None:
    """The packed storage of an intermediate with two spread dims; None if it is stored as a plain matrix."""
    dims = [d for d in tiling.shape(value.name) if tiling.trips(d) > 1]
    if value.role != "intermediate" or len(dims) != 2:
        return None
    row, col = dims
    return Band(row, col, max(high - low for low, high in band_ranges(tiling, value.name, row, col)))


def band_bounds(tiling: Tiling, value: str, row: str, col: str) -> tuple[Bound, ...]:
    """Bounds on the tiles of `col` for a tile of `row`, from the conditions outside of which the value is dead."""
    allowed = skippable(tiling.graph, frozenset({value}))
    fixed = frozenset({row})
    return tuple(b for c in allowed if set(c.dims) <= {row, col} and (b := bound(tiling, c, col, fixed)))


def band_ranges(tiling: Tiling, value: str, row: str, col: str) -> list[tuple[int, int]]:
    bounds = band_bounds(tiling, value, row, col)
    return [tile_range(tiling, bounds, col, {row: i * tiling.tile(row)}) for i in range(tiling.trips(row))]


@dataclass(frozen=True)
class GmTensor:
    """A value in GM: its shape, and which dims each axis walks."""

    value: Value
    shape: tuple[int, ...]
    axes: tuple[tuple[str, ...], ...]
    packed: Band | None = None
    lanes: int = 0

    @property
    def order(self) -> tuple[str, ...]:
        """The dims in the order in which they are stored."""
        return tuple(d for axis in self.axes for d in axis)


def gm_tensor(tiling: Tiling, value: Value, lane_dim: str = "") -> GmTensor:
    """How kernels see a value. `lane_dim` is the tiled dim that an atomic sum leaves to the host to finish."""
    graph = tiling.graph
    if not tiling.shape(value.name):
        lanes = tiling.tile(lane_dim) if lane_dim else max(LANES, *(t for _, t in tiling.tiles))
        axes = value.layout if value.role != "intermediate" else tuple((d,) for d in value.dims)
        return GmTensor(value, (*(graph.size(a) for a in axes), lanes), (*axes, ()), None, lanes)
    packed = band(tiling, value)
    if packed:
        units = tuple(d for d in value.dims if d not in (packed.row, packed.col))
        tiles = (tiling.trips(packed.row), packed.width, tiling.tile(packed.row), tiling.tile(packed.col))
        shape = (*(graph.size((d,)) for d in units), *tiles)
        return GmTensor(value, shape, tuple((d,) for d in units), packed)
    if value.role == "intermediate":
        return as_matrix(tiling, value)
    return _external(tiling, value)


def arranged(tiling: Tiling, value: Value) -> bool:
    """Whether the host has to reorder a caller's tensor, since its tiles would not be rows of elements that lie next to each other.

    They are if the tiled dims stand in the order of the tile, nothing stands behind the last of them or behind the first in its axis, and
    what reaches beyond a dim's end is not the next index of another dim in the same (or merged) axis.
    """
    matrix, size = tiling.shape(value.name), {d.name: d.size for d in tiling.graph.dims}
    if matrix != tuple(d for d in value.dims if d in matrix):
        return True
    axes = _merged(value, matrix)
    for d in matrix:
        axis = next(a for a in axes if d in a)
        others = [x for x in axis if size[x] > 1 and x not in matrix]
        if any(axis.index(x) > axis.index(d) for x in others) or (tiling.has_tail(d) and others):
            return True
    return False


def as_matrix(tiling: Tiling, value: Value) -> GmTensor:
    """A value as matrices: all other dims first, each on its own."""
    ordered = (*(d for d in value.dims if not tiling.is_matrix(d)), *tiling.shape(value.name))
    return GmTensor(value, tuple(tiling.graph.size((d,)) for d in ordered), tuple((d,) for d in ordered))


def sliced(tiling: Tiling, part: Slice) -> Tiling:
    """The tiling under which the source of a slice has the tiles of the slice."""
    tiles = {d: t for d, t in tiling.tiles if d != part.dim}
    if tiling.is_matrix(part.into):
        tiles[part.dim] = tiling.tile(part.into)
    return Tiling(tiling.graph, tuple(tiles.items()))


def gathered(tiling: Tiling, rows: Rows) -> Tiling:
    """The tiling under which rows of a source are read one by one."""
    inner = sliced(tiling, rows.part) if rows.part else tiling
    return Tiling(tiling.graph, tuple((d, t) for d, t in inner.tiles if d != rows.dim))


def _external(tiling: Tiling, value: Value) -> GmTensor:
    if arranged(tiling, value):
        return as_matrix(tiling, value)
    axes = _merged(value, tiling.shape(value.name))
    return GmTensor(value, tuple(math.prod(tiling.graph.dim(d).size for d in a) for a in axes), axes)


def _merged(value: Value, matrix: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """The axes of a caller's tensor, with all behind the first tiled dim as one, so that a tile is rows of a matrix with one stride."""
    first = next(i for i, axis in enumerate(value.layout) if matrix[0] in axis)
    keep = first + 1 if len(matrix) == 2 and matrix[1] not in value.layout[first] else first
    merged = tuple(d for axis in value.layout[keep:] for d in axis)
    return (*value.layout[:keep], *([merged] if merged else []))


def flat_index(tiling: Tiling, axis: tuple[str, ...], starts: dict[str, str]) -> str:
    """The index of an axis that walks several dims, innermost last, as source text."""
    text, terms, stride = "", list[str](), 1
    for dim in reversed(axis):
        start = starts.get(dim, "0")
        if start != "0":
            terms.append(start if stride == 1 else f"{_wrapped(start)} * {stride}")
        stride *= tiling.graph.dim(dim).size
    text = " + ".join(reversed(terms))
    return text or "0"


def _wrapped(text: str) -> str:
    return text if text.replace("_", "").isalnum() else f"({text})"


def span(start: str, extent: int) -> str:
    """`start : start + extent`, folded where the start is a number."""
    return f"{start}:{int(start) + extent}" if start.isdigit() else f"{start} : {start} + {extent}"
