"""From measured files to a calibrated device: rows with their kernels, the fit, and what to say about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from fusion.calibrate import measured, own, tables
from fusion.calibrate.fit import UNDETERMINED, Calibration, Progress, Row, fit, predict
from fusion.calibrate.microbench import benches
from fusion.device import Device
from fusion.errors import FusionError
from fusion.timeline.record import Outline

NOTE = """Every number has a unit and where it is from: D datasheet or documentation, F fitted by its source, S constant of a public
simulator, M measured by its source, I our arithmetic, C fitted by `fusion-plan calibrate`."""


def labels() -> tuple[str, ...]:
    """All kernels that a measured launch can be: the published hand-written ones and the microbenchmarks."""
    return (*measured.labels(), *(f"bench/{b.name}" for b in benches()))


def _outline(label: str) -> Outline:
    if label.startswith("bench/"):
        from fusion.calibrate.emitted import outlines

        return outlines()[label]
    if own.is_own(label):
        return own.outline_of(label)
    return measured.kernel(label)


def rows_of(paths: Sequence[Path], mapping: Sequence[str]) -> tuple[list[Row], list[str]]:
    """Rows to fit from all files, and the labels that were measured but name no known kernel (left out)."""
    known = labels()
    read = [m for p in paths for m in tables.read(p, tables.mapped(mapping))]
    used = tables.only_known(read, known)
    left = [m.label for m in read if m not in used]
    return [Row(m.label, m.us, tuple(_outline(k) for k in m.launches), _operator(m.launches[0])) for m in used], left


def _operator(label: str) -> str:
    """The operator that a kernel is of; for a file its name, where that is all that is known."""
    if own.is_own(label):
        return own.operator_of(label)
    return "" if label.startswith("bench/") else measured.OPERATOR


def calibrated(device: Device, rows: Sequence[Row], progress: Progress) -> Calibration:
    """The fit; a minute on a slow machine, so that `progress` is told every step. Raises FusionError for a single row."""
    if len(rows) < 2:
        remedy = "measure more kernels, or add --published to fit them together with the published rows"
        raise FusionError("one latency says nothing of how far a fit to it is off", where="calibrate", remedy=remedy)
    return fit(device, rows, progress=progress)


def warning(device: Device, result: Calibration, rows: Sequence[Row]) -> str:
    """What to say where the device that the fit began with predicts the rows better than the fit does; else empty."""
    before = sum(abs(predict(device, r) / r.measured_us - 1.0) for r in rows) / len(rows)
    if before >= result.mean_error:
        return ""
    as_it_is, fitted = (f"{100 * error:.1f} %" for error in (before, result.mean_error))
    return (
        f"{device.name} as it is predicts these rows within {as_it_is} on average, the fit within {fitted}: so few rows cannot move "
        "the numbers far from the public ones. Keep it, or add --published."
    )


def report(result: Calibration, left: Sequence[str]) -> Iterator[str]:
    """Lines for the terminal: parameters, what the data cannot tell, residuals, left-out errors, the interval."""
    yield f"{'parameter':20} {'public':>10} {'fitted':>10}  spread left"
    for p in result.parameters:
        state = f"{100 * p.narrowed:.0f} %" if p.determined else f"{100 * p.narrowed:.0f} %  kept: these measurements cannot determine it"
        yield f"{p.key:20} {p.public:10.4g} {p.value:10.4g}  {state}"
    yield ""
    yield f"{'measured':28} {'us':>8} {'fitted':>8} {'error':>8} {'left out':>9}"
    for r in result.residuals:
        yield f"{r.label[:28]:28} {r.measured_us:8.0f} {r.fitted_us:8.0f} {100 * r.error:7.1f} % {100 * r.left_out_error:7.1f} %"
    yield f"mean error {100 * result.mean_error:.1f} %, predicted from the other rows {100 * result.mean_left_out_error:.1f} %"
    yield f"interval of a prediction: ±{100 * result.interval:.0f} % for kernels like these; others are less certain"
    if left:
        yield f"not calibrated, no known kernel for: {', '.join(left[:8])}"
    if any(p.narrowed >= UNDETERMINED for p in result.parameters):
        yield "To tell the others apart: --emit-microbenchmarks DIR, run it on a machine with an NPU, and calibrate with its CSV."
