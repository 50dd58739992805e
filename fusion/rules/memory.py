"""Bytes of the on-chip memories, and the alignments that data movement has."""

from __future__ import annotations

import math
from collections.abc import Iterable

FRACTAL = 16
BLOCK_BYTES = 32
CUBE_SLICE = 128
"""gemm_v0 goes along the sum in slices of this length."""


def over(used: int, limit: int) -> bool:
    """Whether buffers of `used` bytes do not fit."""
    return used > limit


def tile_bytes(extents: Iterable[int], itemsize: int) -> int:
    """What a tile takes on-chip: whole blocks of 32 bytes."""
    return -(-math.prod(extents) * itemsize // BLOCK_BYTES) * BLOCK_BYTES


def cube_operand_bytes(rows: int, inner: int, itemsize: int) -> int:
    """What one operand of a gemm takes in L0A or L0B, which hold two slices along the sum: rows * what they hold of it * size."""
    return rows * min(inner, 2 * CUBE_SLICE) * itemsize


def fractal_rest(length: int, itemsize: int) -> int:
    """How far a side of an L1 tile is from a whole number of fractals (16 elements, 32 of one byte); 0 is aligned."""
    return length % (BLOCK_BYTES if itemsize == 1 else FRACTAL)


def block_rest(length: int, itemsize: int) -> int:
    """How many bytes a row sticks out of whole 32-byte blocks; 0 is aligned."""
    return length * itemsize % BLOCK_BYTES
