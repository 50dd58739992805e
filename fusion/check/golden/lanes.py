"""The meaning of operations that are given repeats, masks and strides: 256 bytes a repeat, eight blocks of 32 bytes each."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from fusion.check.golden.operands import Meaning, Meanings, Operands, Span
from fusion.check.golden.scalars import NotInterpreted
from fusion.check.golden.store import Array, array

OPS = Meanings()
BLOCKS = 8
"""Blocks in a repeat."""
REDUCERS: dict[str, Callable[..., Array]] = {"sum": np.sum, "max": np.max, "min": np.min}


def _places(span: Span, mask: int, repeats: int, block_step: int, repeat_step: int) -> npt.NDArray[np.intp]:
    """Where the first `mask` lanes of every repeat lie, as [repeat, lane]; strides in 32-byte blocks."""
    per_block = 32 // span.tile.data.itemsize
    lane = np.arange(mask)
    in_repeat = lane // per_block * block_step * per_block + lane % per_block
    return np.arange(repeats)[:, None] * repeat_step * per_block + in_repeat


def _lanes(span: Span, mask: int, repeats: int, block_step: int, repeat_step: int) -> Array:
    """The values of those lanes, half precision widened."""
    return array(span.read(span.tile.data.size)[_places(span, mask, repeats, block_step, repeat_step)])


def _put(span: Span, at: object, values: object) -> None:
    span.tile.put(np.asarray(at, np.intp) + span.start, array(values))


def _block_reduce(function: Callable[..., Array]) -> Meaning:
    """dst[repeat, block] = the block's lanes that are on; a block without any is left as it is."""

    def run(o: Operands) -> None:
        repeats, mask, target_step, block_step, repeat_step = (o.count(i) for i in range(2, 7))
        values = _lanes(o.span(1), mask, repeats, block_step, repeat_step)
        per_block = 32 // o.span(1).tile.data.itemsize
        for block in range(-(-mask // per_block)):
            part = values[:, block * per_block : (block + 1) * per_block]
            _put(o.span(0), np.arange(repeats) * target_step * BLOCKS + block, function(part, axis=1))

    return run


def _whole_reduce(function: Callable[..., Array]) -> Meaning:
    """One number a repeat, or where the order asks for it the number and the lane that it is from."""

    def run(o: Operands) -> None:
        mask, repeats, target_step, block_step, repeat_step = (o.count(i) for i in range(2, 7))
        order = o.text(7) if len(o.args) > 7 else "ORDER_ONLY_VALUE"
        values = _lanes(o.span(1), mask, repeats, block_step, repeat_step)
        results = function(values, axis=1)
        lanes = np.argmax(values == results[:, None], axis=1)
        width = 2 if order in ("ORDER_VALUE_INDEX", "ORDER_INDEX_VALUE") else 1
        at = np.arange(repeats) * target_step * width
        if order != "ORDER_ONLY_INDEX":
            _put(o.span(0), at + (order == "ORDER_INDEX_VALUE"), results)
        if order != "ORDER_ONLY_VALUE":
            _put_bits(o.span(0), at + (order == "ORDER_VALUE_INDEX"), lanes)

    return run


def _put_bits(span: Span, at: npt.NDArray[np.intp], numbers: npt.NDArray[np.intp]) -> None:
    """Whole numbers as bits into elements of floats."""
    bits = np.uint32 if span.tile.data.itemsize == 4 else np.uint16
    span.tile.data.view(bits)[at + span.start] = numbers.astype(bits)


for _name, _function in REDUCERS.items():
    OPS[f"ascend_block_reduce_{_name}"] = _block_reduce(_function)
    OPS[f"ascend_wholereduce{_name}"] = _whole_reduce(_function)


@OPS.entry("brcb_experiment")
def _brcb(o: Operands) -> None:
    """Every element fills one block, eight elements a repeat."""
    repeats, block_step, repeat_step = o.count(3), o.count(4), o.count(5)
    per_block = 32 // o.span(1).tile.data.itemsize
    values = np.repeat(o.span(2).read(repeats * BLOCKS).reshape(repeats, BLOCKS), per_block, axis=1)
    _put(o.span(1), _places(o.span(1), BLOCKS * per_block, repeats, block_step, repeat_step), values)


@OPS.entry("gatherb")
def _gatherb(o: Operands) -> None:
    """Blocks at byte offsets, eight a repeat."""
    repeats, block_step, repeat_step = o.count(4), o.count(5), o.count(6)
    target, item = o.span(1), o.span(1).tile.data.itemsize
    offsets = o.span(3).tile.data[o.span(3).start :][: repeats * BLOCKS].astype(np.int64)
    blocks = np.take(o.span(2).raw(), offsets[:, None] + np.arange(32), mode="clip").view(target.tile.data.dtype)
    _put(target, _places(target, BLOCKS * 32 // item, repeats, block_step, repeat_step), blocks.reshape(repeats, -1))


@OPS.entry("fill_experiment")
def _fill(o: Operands) -> None:
    """A number in the lanes whose bit is set."""
    target, bits, repeats = o.span(1), o.count(3), o.count(4)
    if target.tile.data.itemsize != 4:
        raise NotInterpreted("fill_experiment of elements that are not 32 bits wide: its mask has 64 bits")
    at = _places(target, 64, repeats, o.count(5), o.count(6))[:, [bool(bits >> lane & 1) for lane in range(64)]]
    _put(target, at, np.full(at.shape, o.number(2)))


# ---- operations with a count, and sums


@OPS.entry("sub_experiment")
def _sub(o: Operands) -> None:
    o.span(0).write(o.span(1).read(o.count(3)) - o.span(2).read(o.count(3)))


@OPS.entry("abs_experiment")
def _abs(o: Operands) -> None:
    o.span(0).write(np.abs(o.span(1).read(o.count(2))))


@OPS.entry("mins_experiment")
def _mins(o: Operands) -> None:
    o.span(0).write(np.minimum(o.span(1).read(o.count(3)), o.number(2)))


@OPS.entry("reducesum_experiment")
def _sum_of_all(o: Operands) -> None:
    o.span(0).write(np.sum(o.span(1).read(o.count(2)), keepdims=True))


@OPS.entry("reducesum_mask_experiment")
def _sum_of_lanes(o: Operands) -> None:
    o.span(0).write(np.sum(_lanes(o.span(1), o.count(2), o.count(3), 1, o.count(4)), keepdims=True))


@OPS.entry("sum_experiment")
def _sum_of_rows(o: Operands) -> None:
    """dst[i] = the first n of row i; rows are `inner` elements long."""
    rows, inner, n = o.count(3), o.count(4), o.count(5)
    o.span(1).write(o.span(2).read(rows * inner).reshape(rows, inner)[:, :n].sum(axis=1))
