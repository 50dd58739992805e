"""Device files: what is shipped, and what is said about a wrong one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fusion.device import available, load, loads, save
from fusion.errors import FusionError
from fusion.plan.device import Limits


def test_all_shipped_devices_load_and_name_sources() -> None:
    assert set(available()) >= {"910B1", "910B2", "910B3", "910B4", "910C"}
    for name in available():
        device = load(name)
        assert device.name == name
        assert all(n.source for n in device.numbers.values())


def test_peaks_are_the_public_ones() -> None:
    peaks = {"910B1": 364, "910B2": 354, "910B3": 295, "910B4": 246}
    assert {n: round(load(n).peak_tflops) for n in peaks} == peaks


def test_the_limits_of_910b3_are_those_of_the_planner() -> None:
    assert replace(load("910B3").limits(), device=None) == Limits()


def test_a_device_round_trips_through_its_text() -> None:
    device = load()
    again = loads(save(device), "again.toml")
    assert {k: n.unit for k, n in again.numbers.items()} == {k: n.unit for k, n in device.numbers.items()}
    assert all(again[k] == pytest.approx(device[k], rel=1e-5) for k in device.numbers)
    assert (again.interval, again.calibrated) == (device.interval, device.calibrated)


def test_chip_bandwidth_follows_the_measured_l2_hits() -> None:
    measured = {0.938: 3870, 0.893: 3520, 0.576: 2130, 0.323: 1620}
    assert all(load().chip_rate(h) == pytest.approx(gb, rel=0.03) for h, gb in measured.items())


def test_a_file_may_start_from_another_device() -> None:
    mine = loads('base = "910B3"\nname = "mine"\n[cores]\ncube = { value = 8, unit = "1", source = "me" }\n', "mine.toml")
    assert mine.cube_cores == 8 and mine["gm.latency"] == load()["gm.latency"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[gm]\nlatency = 3\n", "gm.latency = 3 has no unit"),
        ('[gm]\nlatency = { value = 3, source = "x" }\n', "gm.latency has no unit"),
        ('[gm]\nlatency = { value = 3, unit = "ns" }\n', "gm.latency has no source"),
        ('[gm]\nlatency = { value = -3, unit = "ns", source = "x" }\n', "gm.latency: value -3 must be"),
        ('[gm]\nlatency = { value = "a", unit = "ns", source = "x" }\n', "gm.latency: value 'a' is no number"),
        ('[gm]\nlatency = { value = nan, unit = "ns", source = "x" }\n', "is no number"),
        ('[gm]\nlatency = { value = 3, unit = "GB/s", source = "x" }\n', "gm.latency: unit 'GB/s'"),
        ('[gm]\nlatencies = { value = 3, unit = "ns", source = "x" }\n', "gm.latencies is no key"),
        ("interval = -1\n", "interval = -1"),
        ("gm = [", "not TOML"),
    ],
)
def test_a_wrong_file_names_the_key(text: str, said: str) -> None:
    with pytest.raises(FusionError, match=r"mine\.toml") as error:
        loads('base = "910B3"\n' + text, "mine.toml")
    assert said in str(error.value)


def test_a_missing_number_names_the_key() -> None:
    with pytest.raises(FusionError, match=r"cores\.cube is missing and \d+ more"):
        loads('name = "x"\n', "mine.toml")


def test_an_unknown_device_suggests_one(tmp_path: Path) -> None:
    with pytest.raises(FusionError, match="910B3"):
        load("910B33")
    with pytest.raises(FusionError, match=r"none\.toml: the device file cannot be read: No such file.*\n.*a known device: 910B1"):
        load(str(tmp_path / "none.toml"))
    with pytest.raises(FusionError, match="cannot be read: Is a directory"):
        (tmp_path / "folder.toml").mkdir()
        load(str(tmp_path / "folder.toml"))
    with pytest.raises(FusionError, match="base = '910X9': no device"):
        loads('base = "910X9"', "my.toml")
    with pytest.raises(FusionError, match=r"gm = 3 is no table\n  write \[gm\]"):
        loads('base = "910B3"\ngm = 3', "my.toml")


def test_counts_are_whole_numbers() -> None:
    text = 'base = "910B3"\n[cores]\ncube = { value = 2.5, unit = "1", source = "mine" }\n'
    with pytest.raises(FusionError, match=r"cores\.cube: 2\.5 is no whole number"):
        loads(text, "mine.toml")
