"""The precision standard: an element's mixed tolerance, and a double gate over all elements of an output.

    element passes  iff  |actual - golden| <= atol + rtol * |golden|
    output passes   iff  share of passing elements >= ratio  and  largest absolute error <= max_abs

Tolerances depend on the output's dtype only. Infinities and NaNs must sit at the same places (infinities with the same
sign) and are then left out; if nothing else is left, the output passes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from fusion.errors import FusionError, did_you_mean

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Tolerance:
    atol: float
    rtol: float
    max_abs: float
    ratio: float


EXACT = Tolerance(0.0, 0.0, 0.0, 1.0)

TOLERANCES: dict[str, Tolerance] = {
    "float16": Tolerance(2.0**-14, 2.0**-9, 0.1, 0.99),
    "bfloat16": Tolerance(2.0**-10, 2.0**-6, 1.0, 0.99),
    "float32": Tolerance(2.0**-16, 2.0**-10, 0.01, 0.99),
    "float8_e4m3": Tolerance(2.0**-4, 2.0**-2, 1.0, 0.99),
    "float8_e5m2": Tolerance(2.0**-3, 2.0**-1, 0.1, 0.99),
    **dict.fromkeys(("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"), EXACT),
}
ALIASES = {"float": "float32", "half": "float16", "bf16": "bfloat16", "float8_e4m3fn": "float8_e4m3"}


class TensorLike(Protocol):
    """What is needed of a torch tensor: this module does not import torch."""

    def detach(self) -> TensorLike: ...
    def cpu(self) -> TensorLike: ...
    def double(self) -> TensorLike: ...
    def numpy(self) -> npt.NDArray[np.generic]: ...


@dataclass(frozen=True)
class Comparison:
    """The result for one output. `elements` are those compared; `special_match` is False if inf or NaN sit elsewhere."""

    dtype: str
    elements: int
    ratio: float
    max_abs: float
    special_match: bool
    passed: bool
    required: Tolerance

    @property
    def ratio_fails(self) -> bool:
        return self.ratio < self.required.ratio

    @property
    def error_fails(self) -> bool:
        """Whether an element is too far off, whatever the share of the others; an exact dtype has the share alone."""
        return self.required != EXACT and not self.max_abs <= self.required.max_abs

    def failures(self) -> tuple[str, ...]:
        """Every limit that is missed, with its value; empty if the output passes."""
        found = [f"ratio {shown_below(self.ratio)} is below {self.required.ratio:g}"] if self.ratio_fails else []
        found += [f"largest error {self.max_abs:.3g} is above {self.required.max_abs:g}"] if self.error_fails else []
        return (*found, *(() if self.special_match else ("inf/NaN at other places",)))

    def __str__(self) -> str:
        if not self.passed:
            return f"FAIL {', '.join(self.failures())}"
        return f"pass ratio {self.ratio:.4f} (>= {self.required.ratio:g}), max_abs {self.max_abs:.3g} (<= {self.required.max_abs:g})"

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def shown_below(ratio: float) -> str:
    """A share rounded down, so that one below 1 does not read 1.0000."""
    return f"{math.floor(ratio * 10_000) / 10_000:.4f}"


def tolerance(dtype: str) -> Tolerance:
    """The tolerance of an output dtype. Refuses unknown dtypes."""
    name = str(dtype).removeprefix("torch.")
    name = ALIASES.get(name, name)
    if name not in TOLERANCES:
        raise FusionError(f"no tolerance for dtype {dtype!r}", where="precision", remedy=did_you_mean(name, TOLERANCES))
    return TOLERANCES[name]


def as_values(data: npt.NDArray[np.generic] | TensorLike) -> Values:
    """Any array or tensor as float64."""
    if isinstance(data, np.ndarray):
        return data.astype(np.float64)
    return data.detach().cpu().double().numpy().astype(np.float64)


def special_places_agree(actual: Values, golden: Values) -> bool:
    same_nan = np.array_equal(np.isnan(actual), np.isnan(golden))
    infinite = np.isinf(golden)
    return same_nan and np.array_equal(np.isinf(actual), infinite) and np.array_equal(actual[infinite], golden[infinite])


def compare(actual: npt.NDArray[np.generic] | TensorLike, golden: npt.NDArray[np.generic] | TensorLike, dtype: str) -> Comparison:
    """Compares an output with its golden by the standard of `dtype`. Refuses different shapes.

    Integers are compared as they are, so that 64-bit values do not lose bits.
    """
    required = tolerance(dtype)
    if required is EXACT:
        return _compare_exact(actual, golden, dtype)
    a, g = as_values(actual), as_values(golden)
    _check_shapes(a.shape, g.shape, dtype)
    agree = special_places_agree(a, g)
    finite = np.isfinite(a) & np.isfinite(g)
    error, bound = np.abs(a[finite] - g[finite]), required.atol + required.rtol * np.abs(g[finite])
    wrong_places = int(np.count_nonzero(np.isfinite(a) != np.isfinite(g)))
    compared = error.size + wrong_places
    ratio = float(np.count_nonzero(error <= bound)) / compared if compared else 1.0
    max_abs = float(error.max()) if error.size else 0.0
    return Comparison(dtype, compared, ratio, max_abs, agree, agree and ratio >= required.ratio and max_abs <= required.max_abs, required)


def _integers(data: npt.NDArray[np.generic] | TensorLike) -> npt.NDArray[np.generic]:
    return data if isinstance(data, np.ndarray) else data.detach().cpu().numpy()


def _compare_exact(actual: npt.NDArray[np.generic] | TensorLike, golden: npt.NDArray[np.generic] | TensorLike, dtype: str) -> Comparison:
    a, g = _integers(actual), _integers(golden)
    _check_shapes(a.shape, g.shape, dtype)
    equal = int(np.count_nonzero(a == g))
    worst = float(np.abs(a.astype(np.float64) - g.astype(np.float64)).max()) if a.size else 0.0
    ratio = equal / a.size if a.size else 1.0
    return Comparison(dtype, int(a.size), ratio, worst, True, equal == a.size, EXACT)


def _check_shapes(actual: tuple[int, ...], golden: tuple[int, ...], dtype: str) -> None:
    if actual != golden:
        raise FusionError(f"shape {actual}, golden {golden}", where=f"comparison of {dtype}")


def all_pass(results: Mapping[str, Comparison]) -> bool:
    return all(result.passed for result in results.values())
