"""Fitting device numbers to measured latencies: Gauss-Newton on logarithms, held near the public values where the data say nothing.

    minimize  sum over rows ((ln predicted - ln measured) / NOISE)^2  +  sum over parameters ((ln value - ln public) / width)^2

Every parameter acts on all kernels that use the unit it describes; none belongs to an operator, a kernel or a row. How far the data narrow
a parameter is the ratio of its standard deviation after the fit to `width`: near 1, the data cannot determine it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fusion.device import Device
from fusion.errors import FusionError
from fusion.timeline.launch import time_launch
from fusion.timeline.record import Outline
from fusion.words import count

NOISE = 0.02  # relative: what one latency is worth
STEP = 0.05  # of a logarithm, for differences
ROUNDS = 12
UNDETERMINED = 0.9
Floats = npt.NDArray[np.float64]
Progress = Callable[[str, int, int], None]
"""Called with what is being done, how many steps are done, and how many there are."""

PARAMETERS: Mapping[str, tuple[float, float]] = {  # public value in base units, width of a logarithm
    "launch.block_start": (1400.0, 0.3),
    "gm.latency": (490.0, 0.7),
    "gm.store_latency": (276.0, 0.7),
    "gm.cube_rate": (161.0, 0.25),
    "gm.vector_rate": (135.0, 0.25),
    "gm.fix_rate": (75.0, 0.3),
    "gm.atomic_factor": (1.5, 0.3),
    "sync.cross_latency": (278.0, 0.7),
    "sync.drain": (30.0, 0.7),
    "vector.scale": (1.0, 0.2),
    "vector.start": (22.0, 0.4),
}


@dataclass(frozen=True)
class Row:
    """One measured latency and the launches that it is the sum of. `group` is the operator of its kernels, empty if unknown."""

    label: str
    measured_us: float
    launches: tuple[Outline, ...]
    group: str = ""


@dataclass(frozen=True)
class Parameter:
    """A fitted number in base units. `narrowed` is its spread after the fit over that before: 1 means that the data say nothing."""

    key: str
    public: float
    value: float
    narrowed: float
    determined: bool


@dataclass(frozen=True)
class Residual:
    """A row as fitted, and as predicted by a fit to all other rows."""

    label: str
    measured_us: float
    fitted_us: float
    left_out_us: float

    @property
    def error(self) -> float:
        return self.fitted_us / self.measured_us - 1.0

    @property
    def left_out_error(self) -> float:
        return self.left_out_us / self.measured_us - 1.0


@dataclass(frozen=True)
class Calibration:
    """The fitted device, with what the fit is worth."""

    device: Device
    parameters: tuple[Parameter, ...]
    residuals: tuple[Residual, ...]
    interval: float

    @property
    def mean_error(self) -> float:
        return float(np.mean([abs(r.error) for r in self.residuals]))

    @property
    def mean_left_out_error(self) -> float:
        return float(np.mean([abs(r.left_out_error) for r in self.residuals]))


def predict(device: Device, row: Row) -> float:
    return sum(time_launch(o, device).us for o in row.launches)


def _at(device: Device, keys: Sequence[str], theta: Floats) -> Device:
    values = {k: PARAMETERS[k][0] * math.exp(t) for k, t in zip(keys, theta, strict=True)}
    return device.with_values(values, "C: fitted to measured latencies")


def _logs(device: Device, rows: Sequence[Row], keys: Sequence[str], theta: Floats) -> Floats:
    at = _at(device, keys, theta)
    return np.array([math.log(predict(at, r)) for r in rows])


def _jacobian(device: Device, rows: Sequence[Row], keys: Sequence[str], theta: Floats) -> Floats:
    columns = list[Floats]()
    for i in range(len(keys)):
        step = np.zeros(len(keys))
        step[i] = STEP
        columns.append((_logs(device, rows, keys, theta + step) - _logs(device, rows, keys, theta - step)) / (2 * STEP))
    return np.array(columns).T


def _objective(residual: Floats, theta: Floats, width: Floats) -> float:
    return float(np.sum((residual / NOISE) ** 2) + np.sum((theta / width) ** 2))


def _solve(device: Device, rows: Sequence[Row], keys: Sequence[str], start: Floats, rounds: int) -> tuple[Floats, Floats]:
    """The logarithms of the factors on the public values, and their covariance."""
    width = np.array([PARAMETERS[k][1] for k in keys])
    target = np.log([r.measured_us for r in rows])
    theta = start.copy()
    residual = _logs(device, rows, keys, theta) - target
    normal = np.diag(1 / width**2)
    for _ in range(rounds):
        jacobian = _jacobian(device, rows, keys, theta)
        normal = jacobian.T @ jacobian / NOISE**2 + np.diag(1 / width**2)
        step = np.linalg.solve(normal, -(jacobian.T @ residual / NOISE**2 + theta / width**2))
        theta, residual, moved = _line_search(device, rows, keys, theta, np.clip(step, -0.5, 0.5), target, width)
        if not moved:
            break
    return theta, np.asarray(np.linalg.inv(normal), np.float64)


def _line_search(
    device: Device, rows: Sequence[Row], keys: Sequence[str], theta: Floats, step: Floats, target: Floats, width: Floats
) -> tuple[Floats, Floats, bool]:
    """The longest of a few fractions of the step that improves; the last value tells whether going on is worth it."""
    residual = _logs(device, rows, keys, theta) - target
    now = _objective(residual, theta, width)
    for fraction in (1.0, 0.5, 0.25, 0.1):
        tried = theta + fraction * step
        new = _logs(device, rows, keys, tried) - target
        better = _objective(new, tried, width)
        if better < now:
            return tried, new, now - better > 2e-4 * now
    return theta, residual, False


def narrowing(device: Device, rows: Sequence[Row], keys: Sequence[str]) -> dict[str, float]:
    """What the rows can say about each parameter at its public value: spread after over spread before."""
    width = np.array([PARAMETERS[k][1] for k in keys])
    jacobian = _jacobian(device, rows, keys, np.zeros(len(keys)))
    covariance = np.linalg.inv(jacobian.T @ jacobian / NOISE**2 + np.diag(1 / width**2))
    return dict(zip(keys, (np.sqrt(np.diag(covariance)) / width).tolist(), strict=True))


def _silent(_what: str, _done: int, _total: int) -> None:
    return None


def fit(
    device: Device,
    rows: Sequence[Row],
    candidates: Sequence[str] = tuple(PARAMETERS),
    *,
    leave_out: bool = True,
    progress: Progress = _silent,
) -> Calibration:
    """Fits what the rows determine best (fewer parameters than rows), then again without each row; all else keeps its public value.

    A scalar read of UB is no candidate: generated code never has one without a drain, so that their costs cannot be told apart.
    """
    steps = 2 + (len(rows) if leave_out else 0)
    progress("what the rows say of each number", 0, steps)
    narrowed = narrowing(device, rows, candidates)
    keys = sorted((k for k in candidates if narrowed[k] < UNDETERMINED), key=lambda k: narrowed[k])[: max(1, len(rows) - 1)]
    if not keys:
        raise FusionError(
            "the measurements determine no parameter", where="calibrate", remedy="measure more kernels, or --emit-microbenchmarks"
        )
    base = device.with_values({k: PARAMETERS[k][0] for k in candidates}, "public value; these measurements do not determine it")
    progress(f"fit of {count(len(keys), 'number')} to {count(len(rows), 'row')}", 1, steps)
    theta, covariance = _solve(base, rows, keys, np.zeros(len(keys)), ROUNDS)
    narrowed.update(zip(keys, (np.sqrt(np.diag(covariance)) / [PARAMETERS[k][1] for k in keys]).tolist(), strict=True))
    fitted = _at(base, keys, theta)
    parameters = tuple(Parameter(k, PARAMETERS[k][0], fitted[k], narrowed[k], k in keys) for k in candidates)
    residuals = _residuals(base, fitted, rows, keys, theta, leave_out, progress)
    width = interval(residuals)
    measured = tuple(sorted({r.group for r in rows if r.group}))
    device = replace(fitted, interval=width, calibrated=tuple(keys), measured=measured)
    return Calibration(device, parameters, residuals, width)


def _residuals(
    base: Device, fitted: Device, rows: Sequence[Row], keys: Sequence[str], theta: Floats, leave_out: bool, progress: Progress
) -> tuple[Residual, ...]:
    residuals = list[Residual]()
    for i, row in enumerate(rows):
        if leave_out:
            progress(f"fit without {row.label}", 2 + i, 2 + len(rows))
        others = [r for j, r in enumerate(rows) if j != i]
        without = fitted if not leave_out else _at(base, keys, _solve(base, others, keys, theta, 3)[0]) if others else base
        residuals.append(Residual(row.label, row.measured_us, predict(fitted, row), predict(without, row)))
    return tuple(residuals)


def interval(residuals: Sequence[Residual]) -> float:
    """The relative half width that holds nine of ten predictions, if left-out errors are normal: 1.64 times their root mean square."""
    return round(1.64 * math.sqrt(float(np.mean([math.log(r.left_out_us / r.measured_us) ** 2 for r in residuals]))), 3)
