"""Buffers of the interpreted kernel as flat numpy arrays; bfloat16, which numpy lacks, is float32 rounded at every write."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from fusion.simulator.buffers import from_bfloat16_bits, to_bfloat16_bits

Array = npt.NDArray[np.float64]
"""An array of any element type; called one of float64 so that arithmetic on it can be checked."""
STORAGE = {"bfloat16": "float32", "float": "float32", "half": "float16", "bool": "uint8"}


def array(values: object) -> Array:
    """Anything that numpy can hold, as an Array; booleans and integers keep their type."""
    return cast("Array", np.asarray(values))


def storage(dtype: str) -> np.dtype[np.float64]:
    """The numpy type that holds a dtype's values; see Array about its name."""
    return cast("np.dtype[np.float64]", np.dtype(STORAGE.get(dtype, dtype)))


def rounded(values: Array, dtype: str) -> Array:
    """Values as a buffer of the dtype holds them."""
    if dtype == "bfloat16":
        return cast("Array", from_bfloat16_bits(to_bfloat16_bits(values.astype(np.float32))))
    return values.astype(storage(dtype))


@dataclass
class Tile:
    """A buffer: its shape, the dtype that its author gave, and the elements in row-major order."""

    shape: tuple[int, ...]
    dtype: str
    data: Array

    @staticmethod
    def empty(shape: tuple[int, ...], dtype: str) -> Tile:
        """Unwritten: NaN, or -1 for integers, as the simulator's memories start."""
        kind = storage(dtype)
        start = np.array(np.nan if kind.kind == "f" else -1).astype(kind)
        return Tile(shape, dtype, np.full(math.prod(shape), start, kind))

    @property
    def box(self) -> Array:
        return self.data.reshape(self.shape)

    def put(self, where: slice | npt.NDArray[np.intp], values: Array) -> None:
        self.data[where] = (
            rounded(np.asarray(values), self.dtype).reshape(-1) if isinstance(where, slice) else rounded(np.asarray(values), self.dtype)
        )
