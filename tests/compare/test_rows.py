"""Verdicts, the forms of the output, and the command."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from fusion.cli.compare import compare, counts, notes
from fusion.compare.published import published
from fusion.compare.rows import Entry, judged
from fusion.compare.table import as_csv
from fusion.device import load
from fusion.errors import FusionError
from kernels.attention_sink import gqa_sink_bwd

SHAPE = "batch=1,heads=8,groups=2,seq_len=512,dim=128,window=128"


def entry(name: str, us: float | None) -> Entry:
    return Entry(name, int(name[0]), us, us, 0.08, 10.0, error="" if us else "too big")


def test_verdicts_know_ties() -> None:
    found = judged([entry("4", 104.0), entry("2", 100.0), entry("9", 150.0), entry("1", None)])
    assert [e.verdict for e in found] == ["tie (+4 %)", "best", "slower (+50 %)", "no plan"]


def test_json_and_csv_have_the_agreed_fields() -> None:
    (only,) = judged([entry("2", 100.0)])
    assert {"plan", "kernels", "predicted_us", "measured_us", "floor_us", "verdict"} <= only.to_json().keys()
    assert as_csv([only]).splitlines()[1].startswith("2,2,2,100.0,")


def test_counts_are_read() -> None:
    assert counts("9, 6,6,2") == (9, 6, 2)
    for wrong in ("", "a", "0", "-1"):
        with pytest.raises(FusionError, match="--targets"):
            counts(wrong)


def test_handwritten_variants_are_near_their_measured_times() -> None:
    known = published("gqa_sink_bwd")
    assert known and {n: v.us for n, v in known.variants.items()} == {9: 6152, 6: 5020, 5: 5832, 4: 5556, 2: 5127}
    predicted = {n: v.predicted_us(load()) for n, v in known.variants.items()}
    assert all(predicted[n] == pytest.approx(v.us, rel=0.15) for n, v in known.variants.items())
    assert sorted(predicted, key=lambda n: predicted[n]) == [6, 2, 4, 5, 9]


def test_the_measured_shape_is_recognized() -> None:
    known = published("gqa_sink_bwd")
    assert known and known.is_shape_of(gqa_sink_bwd(window=128)) and published("gemm") is None
    assert not known.is_shape_of(gqa_sink_bwd(window=256)) and not known.is_shape_of(gqa_sink_bwd(window=128, seq_len=2048))


def test_the_interval_knows_what_was_measured() -> None:
    device = load("910B3")
    assert device.interval_of("gqa_sink_bwd") == device.interval < 0.15 and device.interval_of("gemm") == 0.25
    assert load("910B2").interval_of("gqa_sink_bwd") == 0.5
    assert notes("gemm", device)[0].startswith("Times are ±25 %: gemm is uncalibrated, 910B3 was calibrated with kernels of gqa_sink_bwd.")
    assert notes("gemm", load("910B2"))[0].startswith("Times are ±50 %: 910B2 is not calibrated")


def test_fast_compare_prints_json_only() -> None:
    result = CliRunner().invoke(compare, ["gqa_sink_bwd", "--targets", "4,2", "--shape", SHAPE, "--fast", "--json"], catch_exceptions=False)
    rows = json.loads(result.stdout)
    assert [r["kernels"] for r in rows] == [4, 2] and any(r["verdict"] == "best" for r in rows)
    assert all(r["predicted_us"] > r["floor_us"] > 0 for r in rows)


def test_a_count_that_no_plan_has_is_a_row() -> None:
    result = CliRunner().invoke(compare, ["gqa_sink_bwd", "--targets", "1,2", "--shape", SHAPE, "--fast", "--json"], catch_exceptions=False)
    first = json.loads(result.stdout)[0]
    assert first["verdict"] == "no plan" and first["error"]


def test_fast_times_are_estimates_after_the_passes() -> None:
    arguments = ["gqa_sink_bwd", "--targets", "2", "--shape", SHAPE, "--fast"]
    plain, passed = (
        json.loads(CliRunner().invoke(compare, [*arguments, "--json", *more], catch_exceptions=False).stdout)[0]
        for more in (["--passes", "none"], [])
    )
    assert passed["predicted_us"] > 1.1 * plain["predicted_us"], "second products take time"
    assert passed["interval"] == pytest.approx(0.18, abs=0.01), "wider than that of a simulated time"
    assert "Nothing was lowered or simulated" in CliRunner().invoke(compare, arguments, catch_exceptions=False).stdout
