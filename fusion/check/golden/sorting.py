"""The meaning of sorts and of gathers by a bit pattern: what ranks or picks elements by their place."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fusion.check.golden.operands import Meanings, Operands, Span
from fusion.check.golden.scalars import NotInterpreted
from fusion.check.golden.store import Array, array

OPS = Meanings()
BLOCK = 32
"""Elements that one Sort32 orders."""
RECORDS = {
    4: np.dtype([("value", "<f4"), ("index", "<u4")]),
    2: np.dtype([("value", "<f2"), ("gap", "<u2"), ("index", "<u4")]),
}
"""What Sort32 and MrgSort move, by the bytes of an element: 8 bytes, of which the upper four are the index."""
PATTERNS = {"P0101": (2, 0), "P1010": (2, 1), "P0001": (4, 0), "P0010": (4, 1), "P0100": (4, 2), "P1000": (4, 3), "P1111": (1, 0)}
"""Built-in patterns: every how many elements, from which on."""


def _descending(values: Array) -> npt.NDArray[np.intp]:
    """Places of the values from the largest to the smallest; equal ones keep their order."""
    return np.argsort(-values, kind="stable")


def _ranked(source: Span, size: int, actual: int) -> Array:
    """[value, place, value, place, ...] of `size` elements, of which those from `actual` on count as -inf."""
    values = np.full(size, -np.inf, np.float32)
    values[:actual] = source.read()[:actual]
    order = _descending(array(values))
    return array(np.stack([values[order], order.astype(np.float32)], axis=1).reshape(-1))


@OPS.entry("sort")
def _sort(o: Operands) -> None:
    o.span(1).write(_ranked(o.span(2), o.count(3) * BLOCK, o.count(4)))


@OPS.entry("topk")
def _topk(o: Operands) -> None:
    """The best K pairs; a copy of whole 32-byte blocks writes what follows them too."""
    target = o.span(1)
    per_block = 32 // target.tile.data.itemsize
    written = -(-2 * o.count(3) // per_block) * per_block
    target.write(_ranked(o.span(2), o.count(4) * BLOCK, o.count(5))[: min(written, target.extent)])


def _records(span: Span) -> npt.NDArray[np.void]:
    size = span.tile.data.itemsize
    if size not in RECORDS:
        raise NotInterpreted("a sort of elements that are neither half nor float")
    raw = span.raw()
    return raw[: raw.size // 8 * 8].view(RECORDS[size])


@OPS.entry("sort32")
def _sort32(o: Operands) -> None:
    """Blocks of 32 as records in descending order, each with the index that its element had."""
    count = o.count(3) * BLOCK
    values, indices = o.span(1).tile.data[o.span(1).start :][:count], o.span(2).tile.data[o.span(2).start :][:count]
    target = _records(o.span(0))[:count]
    for start in range(0, count, BLOCK):
        block = slice(start, start + BLOCK)
        order = _descending(array(values[block].astype(np.float32)))
        target["value"][block], target["index"][block] = values[block][order], indices[block][order].view(np.uint32)


@OPS.entry("merge_sort")
def _merge_sort(o: Operands) -> None:
    """Lists of records merged, always the largest head first; of equal ones that of the earlier list."""
    ways = o.count(1)
    if o.span(2).tile.data.itemsize != 4:
        raise NotInterpreted("merge_sort of half")
    lists = [_records(o.span(3 + i))[: o.count(3 + ways + i)].copy() for i in range(ways)]
    target, heads = _records(o.span(2)), [0] * ways
    for at in range(sum(len(found) for found in lists)):
        left = [i for i in range(ways) if heads[i] < len(lists[i])]
        best = max(left, key=lambda i: (float(lists[i]["value"][heads[i]]), -i))
        target[at] = lists[best][heads[best]]
        heads[best] += 1


@OPS.entry("init_sort_buf")
def _init_sort_buf(o: Operands) -> None:
    """-inf as every value, all bits set as every index."""
    pairs = np.tile(np.array([-np.inf, 0], np.float32), o.count(3) // 2)
    pairs.view(np.uint32)[1::2] = 0xFFFFFFFF
    target = o.span(1).raw()
    target[: pairs.nbytes] = pairs.view(np.uint8)


@OPS.entry("gather_mask")
def _gather_mask(o: Operands) -> None:
    """The elements that a built-in pattern names, close together; with a buffer, those at the places that it lists."""
    source, pattern = o.span(2).read(), o.args[3]
    if isinstance(pattern, Span):
        o.span(1).write(source[pattern.read().astype(np.int64)])
        return
    step, first = PATTERNS[o.text(3)]
    o.span(1).write(source[first::step])


@OPS.entry("gather_mask_experiment")
def _gather_mask_experiment(o: Operands) -> None:
    """As with bits, with strides in 32-byte blocks; in counter mode `mask` elements a repeat, else all of 256 bytes."""
    source, item = o.span(2), o.span(2).tile.data.itemsize
    per_block = 32 // item
    lanes = o.count(5) if o.args[4] else 256 // item
    block_step, repeats, repeat_step, bits_step = (o.count(i) for i in range(6, 10))
    lane = np.arange(lanes)
    kept: list[Array] = []
    for repeat in range(repeats):
        at = repeat * repeat_step * per_block + lane // per_block * block_step * per_block + lane % per_block
        chosen = np.unpackbits(o.span(3).raw()[repeat * bits_step * 32 :], bitorder="little")[:lanes].astype(bool)
        kept.append(array(source.read(source.tile.data.size)[at[: chosen.size][chosen]]))
    o.span(1).write(np.concatenate(kept))
