"""The shipped device against the published latencies."""

from __future__ import annotations

import math

import pytest

from fusion.calibrate import measured
from fusion.calibrate.fit import PARAMETERS, Row, fit, narrowing, predict
from fusion.device import load


def predicted() -> dict[str, float]:
    device = load("910B3")
    return {r.label: predict(device, r) / r.measured_us - 1.0 for r in measured.rows()}


def test_every_row_is_predicted_within_15_percent() -> None:
    assert all(abs(e) < 0.15 for e in predicted().values()), predicted()


def test_the_order_of_the_variants_is_right() -> None:
    device, total = load("910B3"), dict[str, float]()
    for row in measured.rows():
        total[row.label[0]] = total.get(row.label[0], 0.0) + predict(device, row)
    assert sorted(total, key=total.__getitem__) == ["6", "2", "4", "5", "9"]


def test_the_shipped_device_is_what_calibration_gives() -> None:
    result, shipped = fit(load("910B1"), measured.rows(), leave_out=False), load("910B3")
    start = fit(shipped, measured.rows(), leave_out=False)
    assert result.device.calibrated  # from another device too
    assert all(start.device[k] == pytest.approx(shipped[k], rel=0.02) for k in PARAMETERS)


def test_there_are_few_parameters_and_none_serves_one_row_only() -> None:
    assert len(PARAMETERS) <= 12
    device, rows = load("910B3"), measured.rows()
    for key in device.calibrated:
        more = device.with_values({key: device[key] * 1.3})
        moved = [abs(math.log(predict(more, r) / predict(device, r))) for r in rows]
        assert sum(m > 0.002 for m in moved) >= 2, key


def test_a_fit_recovers_what_made_the_times() -> None:
    truth = load("910B3").with_values({"launch.block_start": 900.0, "sync.cross_latency": 350.0})
    rows = [Row(r.label, predict(truth, r), r.launches) for r in measured.rows()]
    found = fit(load("910B3"), rows, ("launch.block_start", "sync.cross_latency"), leave_out=False)
    assert found.mean_error < 0.03


def test_a_parameter_without_effect_is_undetermined() -> None:
    said = narrowing(load("910B3"), measured.rows()[:2], ("sync.drain", "sync.cross_latency"))
    assert said["sync.drain"] == pytest.approx(1.0, abs=0.01) and said["sync.cross_latency"] < 0.9
