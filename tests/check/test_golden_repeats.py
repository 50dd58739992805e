"""Sorts, and operations that are given repeats and strides, against what their documentation says in numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from fusion.check.golden import lanes, sorting
from fusion.check.golden.operands import Operands, Span
from fusion.check.golden.scalars import NotInterpreted
from fusion.check.golden.store import Tile, array

OPS = {**lanes.OPS, **sorting.OPS}
X = np.random.default_rng(2).permutation(128).astype(np.float32) / 128


def span(values: object, dtype: str = "float32") -> Span:
    data = array(np.asarray(values, dtype).reshape(-1).copy())
    return Span(Tile(data.shape, dtype, data), 0, data.size)


def run(op: str, *args: object, out: int, dtype: str = "float32", text: str = "") -> np.ndarray:
    """The first buffer after `op` of a template text, an output of -1s, and the arguments."""
    target = span(np.full(out, -1), dtype)
    operands: Sequence[object] = ([text] if text else []) + [target, *args]
    OPS[f"ascend_{op}"](Operands(f"ascend_{op}", tuple(operands)))  # type: ignore[arg-type]
    return np.asarray(target.tile.data)


def test_sort_gives_pairs_in_descending_order_and_leaves_out_what_is_not_valid() -> None:
    found = run("sort", span(X), 4, 100, out=256, text="Sort<float>").reshape(128, 2)
    order = np.argsort(-X[:100])
    np.testing.assert_array_equal(found[:100, 0], X[:100][order])
    np.testing.assert_array_equal(found[:100, 1], order)
    assert np.isneginf(found[100:, 0]).all()


def test_topk_gives_the_first_pairs() -> None:
    found = run("topk", span(X), 3, 4, 128, 128, out=16, text="TopK<float>")
    np.testing.assert_array_equal(found[:6].reshape(3, 2)[:, 1], np.argsort(-X)[:3])
    assert (found[8:] == -1).all()  # 3 pairs are 24 bytes: one whole block of 32


def test_sort32_keeps_each_index_beside_its_value() -> None:
    index = np.arange(64, dtype=np.uint32) + 1000
    found = run("sort32", span(X[:64]), span(index, "uint32"), 2, out=128)
    for block in (0, 1):
        part = X[32 * block : 32 * block + 32]
        np.testing.assert_array_equal(found[64 * block : 64 * block + 64 : 2], np.sort(part)[::-1])
        bits = found[64 * block + 1 : 64 * block + 64 : 2].view(np.uint32)
        np.testing.assert_array_equal(bits, 1000 + 32 * block + np.argsort(-part))


def test_sort32_of_half_has_records_of_eight_bytes() -> None:
    values = (np.arange(32) % 7).astype(np.float16)
    found = run("sort32", span(values, "float16"), span(np.arange(32), "uint32"), 1, out=128, dtype="float16")
    np.testing.assert_array_equal(found[::4], np.sort(values)[::-1])
    np.testing.assert_array_equal(found.view(np.uint32)[1::2], np.argsort(-values, kind="stable"))


def test_merge_sort_merges_sorted_records() -> None:
    first, second = (run("sort32", span(part), span(np.arange(32), "uint32"), 1, out=64) for part in (X[:32], X[32:64]))
    target = span(np.zeros(128))
    operands = ("MergeSort<float>", 2, target, span(first), span(second), 32, 32)
    OPS["ascend_merge_sort"](Operands("ascend_merge_sort", operands))
    np.testing.assert_array_equal(target.tile.data[::2], np.sort(X[:64])[::-1])


def test_init_sort_buf_is_minus_infinity_and_all_bits() -> None:
    found = run("init_sort_buf", 0, 64, out=128, text="InitSortBuf<float>")
    assert np.isneginf(found[:64:2]).all()
    assert (found.view(np.uint32)[1:64:2] == 0xFFFFFFFF).all()
    assert (found[64:] == -1).all()


@pytest.mark.parametrize(("pattern", "kept"), [("P0101", X[::2]), ("P1010", X[1::2]), ("P1000", X[3::4]), ("P1111", X)])
def test_gather_mask_picks_by_a_pattern(pattern: str, kept: np.ndarray) -> None:
    np.testing.assert_array_equal(run("gather_mask", span(X), pattern, out=128, text="G")[: kept.size], kept)


def test_gather_mask_with_a_buffer_takes_places() -> None:
    found = run("gather_mask", span(X), span([5, 5, 0, 127], "uint32"), out=8, text="G")
    np.testing.assert_array_equal(found[:4], X[[5, 5, 0, 127]])


def test_gather_mask_with_bits_counts_elements() -> None:
    bits = np.array([0b1010, 0xFFFFFFFF], np.uint32)
    found = run("gather_mask_experiment", span(X), span(bits, "uint32"), True, 34, 1, 1, 8, 8, 0, out=64, text="G")
    np.testing.assert_array_equal(found[:4], X[[1, 3, 32, 33]])
    assert (found[4:] == -1).all()


@pytest.mark.parametrize("name", ["sum", "max", "min"])
def test_block_and_whole_reduces(name: str) -> None:
    function = getattr(np, name)
    found = run(f"block_reduce_{name}", span(X), 2, 64, 1, 1, 8, out=16)
    np.testing.assert_allclose(found, function(X.reshape(16, 8), axis=1), rtol=1e-6)
    half_masked = run(f"block_reduce_{name}", span(X), 2, 20, 1, 1, 8, out=16).reshape(2, 8)
    np.testing.assert_allclose(half_masked[1, 2], function(X[80:84]), rtol=1e-6)
    assert (half_masked[:, 3:] == -1).all()
    whole = run(f"wholereduce{name}", span(X), 40, 2, 1, 1, 8, "ORDER_ONLY_VALUE", out=2)
    np.testing.assert_allclose(whole, function(X.reshape(2, 64)[:, :40], axis=1), rtol=1e-6)


def test_whole_reduce_gives_value_and_lane() -> None:
    found = run("wholereducemax", span(X), 64, 2, 1, 1, 8, "ORDER_VALUE_INDEX", out=4)
    np.testing.assert_array_equal(found[::2], X.reshape(2, 64).max(axis=1))
    np.testing.assert_array_equal(found.view(np.uint32)[1::2], X.reshape(2, 64).argmax(axis=1))


def test_brcb_fills_a_block_with_each_element() -> None:
    found = run("brcb_experiment", span(X), 2, 1, 8, out=128, text="brcb<float>")
    np.testing.assert_array_equal(found.reshape(16, 8), np.repeat(X[:16, None], 8, axis=1))


def test_gatherb_takes_blocks_at_byte_offsets() -> None:
    offsets = np.arange(8)[::-1] * 32
    found = run("gatherb", span(X), span(offsets, "uint32"), 1, 1, 8, out=64, text="G")
    np.testing.assert_array_equal(found.reshape(8, 8), X[:64].reshape(8, 8)[::-1])


def test_operations_with_a_count() -> None:
    np.testing.assert_array_equal(run("sub_experiment", span(X), span(X[::-1]), 16, out=32)[:16], X[:16] - X[::-1][:16])
    np.testing.assert_array_equal(run("abs_experiment", span(-X), 16, out=32)[:17], [*X[:16], -1])
    np.testing.assert_array_equal(run("mins_experiment", span(X), 0.5, 128, out=128), np.minimum(X, 0.5))
    np.testing.assert_allclose(run("reducesum_experiment", span(X), 100, out=8)[0], X[:100].sum(), rtol=1e-6)
    np.testing.assert_allclose(run("reducesum_mask_experiment", span(X), 32, 2, 8, out=8)[0], X.reshape(2, 64)[:, :32].sum(), rtol=1e-6)
    rows = run("sum_experiment", span(X), 4, 32, 20, out=4, text="S")
    np.testing.assert_allclose(rows, X.reshape(4, 32)[:, :20].sum(axis=1), rtol=1e-6)
    filled = run("fill_experiment", 2.0, 0b101, 2, 1, 8, out=128, text="F")
    assert np.flatnonzero(filled == 2).tolist() == [0, 2, 64, 66]


def test_what_has_no_meaning_is_said() -> None:
    with pytest.raises(NotInterpreted, match="half"):
        OPS["ascend_merge_sort"](Operands("ascend_merge_sort", ("MergeSort<half>", 2, span(X, "float16"))))
    with pytest.raises(NotInterpreted, match="64 bits"):
        run("fill_experiment", 2.0, 1, 1, 1, 8, out=128, dtype="float16", text="F")
