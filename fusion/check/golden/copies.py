"""Copies between boxes of buffers: what lies outside of a GM buffer is not read and not written, and the rest of the tile is padded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fusion.check.golden.scalars import NotInterpreted
from fusion.check.golden.store import Array, Tile, rounded


@dataclass
class Box:
    """A region with numbers for its starts and extents."""

    tile: Tile
    starts: tuple[int, ...]
    extents: tuple[int, ...]
    in_gm: bool

    def slices(self, extents: tuple[int, ...]) -> tuple[slice, ...]:
        return tuple(slice(start, start + extent) for start, extent in zip(self.starts, extents, strict=True))

    def inside(self) -> tuple[int, ...]:
        """The extents cut to the buffer; on-chip boxes must fit."""
        cut = tuple(max(0, min(e, size - s)) for s, e, size in zip(self.starts, self.extents, self.tile.shape, strict=True))
        if min(self.starts, default=0) < 0 or (cut != self.extents and not self.in_gm):
            raise NotInterpreted(f"a copy outside of its buffer (starts {self.starts}, extents {self.extents}, shape {self.tile.shape})")
        return cut


def _squeezed(extents: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(e for e in extents if e != 1)


def _spread(extents: tuple[int, ...], limits: tuple[int, ...]) -> tuple[int, ...]:
    """`limits`, one for each side longer than 1, put back among the sides of `extents`."""
    remaining = iter(limits)
    return tuple(next(remaining) if e != 1 else 1 for e in extents)


def copy(source: Box, target: Box, pad: float = 0.0, relu: bool = False, transpose: bool = False) -> None:
    """target = source; a tile that GM fills only in part gets `pad` first."""
    if transpose:
        _transposed(source, target)
        return
    shape = _squeezed(source.extents)
    if shape != _squeezed(target.extents):
        _reshaped(source, target, relu)
        return
    one = 0 in source.inside() or 0 in target.inside()
    near, far = source.inside(), target.inside()
    limits = tuple(min(a, b) for a, b in zip(_kept(source.extents, near), _kept(target.extents, far), strict=True))
    if source.in_gm and near != source.extents and not target.in_gm:
        target.tile.box[target.slices(target.extents)] = pad
    if one:
        return
    values = source.tile.box[source.slices(_spread(source.extents, limits))].reshape(limits)
    _put(target, _spread(target.extents, limits), _relu(values) if relu else values)


def _kept(extents: tuple[int, ...], cut: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(c for e, c in zip(extents, cut, strict=True) if e != 1)


def _relu(values: Array) -> Array:
    return np.maximum(values, 0)


def _put(target: Box, extents: tuple[int, ...], values: Array, add: bool = False) -> None:
    box = target.tile.box[target.slices(extents)]
    fresh = rounded(values, target.tile.dtype).reshape(box.shape)
    box[...] = rounded(box + fresh, target.tile.dtype) if add else fresh


def _reshaped(source: Box, target: Box, relu: bool) -> None:
    """The same elements in another shape, without a tail."""
    if source.inside() != source.extents or target.inside() != target.extents or np.prod(source.extents) != np.prod(target.extents):
        raise NotInterpreted(f"a copy of {source.extents} to {target.extents}")
    values = source.tile.box[source.slices(source.extents)]
    _put(target, target.extents, _relu(values) if relu else values)


def _transposed(source: Box, target: Box) -> None:
    values = source.tile.box[source.slices(source.inside())].reshape(_squeezed(source.extents)).T
    _put(target, target.inside(), values)


def atomic_add(source: Box, target: Box) -> None:
    """target += source, cut to the GM buffer."""
    near, far = source.inside(), target.inside()
    limits = tuple(min(a, b) for a, b in zip(_kept(source.extents, near), _kept(target.extents, far), strict=True))
    if 0 in near or 0 in far:
        return
    values = source.tile.box[source.slices(_spread(source.extents, limits))].reshape(limits)
    _put(target, _spread(target.extents, limits), values, add=True)
