"""The precision standard: the table, both gates, and special values."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fusion.errors import FusionError
from fusion.precision import TOLERANCES, compare, tolerance


def ones(n: int = 1000) -> np.ndarray:
    return np.ones(n, np.float32)


@pytest.mark.parametrize("dtype", [name for name, t in TOLERANCES.items() if t.ratio < 1])
def test_the_bound_of_an_element_is_atol_plus_rtol_times_golden(dtype: str) -> None:
    t = tolerance(dtype)
    bound = t.atol + t.rtol
    assert compare(ones() + np.float64(bound) * 0.99, ones(), dtype).ratio == 1.0
    assert compare(ones() + np.float64(bound) * 1.01, ones(), dtype).ratio == 0.0


def test_ratio_gate() -> None:
    actual = ones()
    actual[:10] += 0.005
    assert compare(actual, ones(), "float32").passed
    actual[:11] += 0.005
    result = compare(actual, ones(), "float32")
    assert not result.passed and result.ratio == pytest.approx(0.989) and "FAIL" in str(result)


def test_largest_error_gate() -> None:
    actual = ones()
    actual[0] += 0.02
    result = compare(actual, ones(), "float32")
    assert result.ratio > 0.99 and not result.passed and result.max_abs == pytest.approx(0.02, rel=1e-4)


def test_the_limit_that_is_missed_is_named() -> None:
    some, far, elsewhere = ones(), ones(), ones()
    some[:11] += 0.005
    far[0] += 0.02
    elsewhere[0] = np.nan
    assert compare(some, ones(), "float32").failures() == ("ratio 0.9890 is below 0.99",)
    assert compare(far, ones(), "float32").failures() == ("largest error 0.02 is above 0.01",)
    assert compare(elsewhere, ones(), "float32").failures() == ("inf/NaN at other places",)
    assert compare(ones(), ones(), "float32").failures() == ()
    one_of_many = np.zeros(100_000, np.int32)
    one_of_many[0] = 1
    assert compare(one_of_many, np.zeros_like(one_of_many), "int32").failures() == ("ratio 0.9999 is below 1",)


def test_special_values_must_agree_in_place_and_sign() -> None:
    golden = np.array([1.0, np.inf, -np.inf, np.nan])
    assert compare(golden, golden, "float16").passed and compare(golden, golden, "float16").elements == 1
    assert not compare(np.array([1.0, -np.inf, -np.inf, np.nan]), golden, "float16").passed
    assert not compare(np.array([1.0, np.inf, -np.inf, 0.0]), golden, "float16").passed
    assert not compare(np.array([np.nan, np.inf, -np.inf, np.nan]), golden, "float16").passed
    only_special = np.array([np.inf, np.nan])
    assert compare(only_special, only_special, "float32").passed


def test_integers_are_exact() -> None:
    big = np.array([2**62, 2**62 + 1], np.int64)
    assert compare(big, big, "int64").passed
    assert not compare(big, big - 1, "int64").passed
    assert compare(np.zeros(0, np.int32), np.zeros(0, np.int32), "int32").passed


def test_torch_tensors_and_dtype_names() -> None:
    x = torch.linspace(0, 1, 64, dtype=torch.bfloat16)
    assert compare(x, x.double(), "torch.bfloat16").passed
    assert tolerance("half") == tolerance("float16") and tolerance("float") == tolerance("float32")


def test_refusals() -> None:
    with pytest.raises(FusionError, match="float17"):
        tolerance("float17")
    with pytest.raises(FusionError, match=r"shape \(3,\)"):
        compare(np.zeros(3), np.zeros(4), "float32")
    with pytest.raises(FusionError, match="shape"):
        compare(np.zeros(3, np.int32), np.zeros(4, np.int32), "int32")
