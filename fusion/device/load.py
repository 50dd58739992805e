"""Device files: finding, reading, checking, writing. A file of one's own may start from another device with `base = "910B3"`."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import cast

from fusion.device.model import Device, Number
from fusion.device.schema import ALL_KEYS, UNITS
from fusion.errors import FusionError, did_you_mean

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib  # pyright: ignore

DATA = Path(__file__).parent / "data"
HEAD = ("name", "base", "interval", "calibrated", "measured")
COUNTS = ("cores.cube", "cores.vector_per_cube", "sync.cross_flags", "sync.flag_depth")
POSITIVE = {k for k in ALL_KEYS if not k.endswith((".start", ".drain", ".burst", ".load_start"))}
Table = Mapping[str, object]


def available() -> tuple[str, ...]:
    """Names of the devices that come with the package."""
    return tuple(sorted(p.stem for p in DATA.glob("*.toml")))


def load(name: str = "910B3") -> Device:
    """A device by its name, or by the path of a file that ends in .toml. Raises FusionError with the key that is wrong."""
    if name.endswith(".toml"):
        path = Path(name)
        return replace(loads(_text(path), name), name=name)  # by this name it is found again
    return _shipped(name)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        remedy = f"give a .toml file, or a known device: {', '.join(available())}"
        raise FusionError(f"the device file cannot be read: {reason}", where=str(path), remedy=remedy) from None


@lru_cache(maxsize=16)
def _shipped(name: str) -> Device:
    by_name = {a.lower(): a for a in available()}
    found = by_name.get(name.lower().removeprefix("ascend"))
    if found is None:
        raise FusionError(f"no device {name!r}", remedy=did_you_mean(name, available(), "give a .toml file"))
    return loads((DATA / f"{found}.toml").read_text(), f"{found}.toml")


@lru_cache(maxsize=16)
def loads(text: str, where: str) -> Device:
    """A device from the text of its file; `where` is named in errors."""
    try:
        table = cast(Table, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise FusionError(f"not TOML: {error}", where=where, remedy="correct the line") from None
    start = _start(table.get("base"), where)
    numbers = {**start.numbers, **dict(_numbers({k: v for k, v in table.items() if k not in HEAD}, where))}
    missing = [k for k in ALL_KEYS if k not in numbers]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise FusionError(f"{missing[0]} is missing{more}", where=where, remedy='give it, or start from a known device: base = "910B3"')
    device = replace(start, name=str(table.get("name") or Path(where).stem), numbers=numbers)
    return _uncertainty(device, table, where)


def _start(base: object, where: str) -> Device:
    """The device that a file starts from."""
    if base is None:
        return Device("", {})
    try:
        return load(base if isinstance(base, str) else str(base))
    except FusionError as error:
        raise FusionError(f"base = {base!r}: {error.what}", where=where, remedy=error.remedy) from error


def _uncertainty(device: Device, table: Table, where: str) -> Device:
    interval = table.get("interval", device.interval)
    if not isinstance(interval, int | float) or isinstance(interval, bool) or not 0 <= interval < 10:
        raise FusionError(f"interval = {interval!r}, expected a number such as 0.15", where=where)
    calibrated = _listed(table.get("calibrated", list(device.calibrated)), "calibrated must be a list of keys", where)
    measured = _listed(table.get("measured", list(device.measured)), "measured must be a list of operators", where)
    return replace(device, interval=float(interval), calibrated=calibrated, measured=measured)


def _listed(value: object, expected: str, where: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise FusionError(expected, where=where, remedy='write ["a", "b"], or [] for none')
    return tuple(str(item) for item in cast("list[object]", value))


def _numbers(table: Table, where: str, prefix: str = "") -> Iterator[tuple[str, Number]]:
    for key, entry in table.items():
        name = f"{prefix}{key}"
        if name in ALL_KEYS:
            yield name, _number(name, entry, where)
        elif isinstance(entry, dict) and "value" not in entry and any(k.startswith(f"{name}.") for k in ALL_KEYS):
            yield from _numbers(cast(Table, entry), where, f"{name}.")
        elif any(k.startswith(f"{name}.") for k in ALL_KEYS):
            inside = sorted(k.removeprefix(f"{name}.") for k in ALL_KEYS if k.startswith(f"{name}."))
            raise FusionError(
                f"{name} = {entry!r} is no table", where=where, remedy=f"write [{name}] and below it {', '.join(inside[:4])}, ..."
            )
        else:
            raise FusionError(f"{name} is no key of a device file", where=where, remedy=did_you_mean(name, ALL_KEYS))


def _number(key: str, entry: object, where: str) -> Number:
    units = UNITS[ALL_KEYS[key]]
    example = f'{key.rsplit(".", 1)[-1]} = {{ value = 1, unit = "{next(iter(units))}", source = "where it is from" }}'
    if not isinstance(entry, dict):
        raise FusionError(f"{key} = {entry!r} has no unit and no source", where=where, remedy=f"write {example}")
    table = cast(Table, entry)
    lacking = [f for f in ("value", "unit", "source") if f not in table]
    if lacking:
        raise FusionError(f"{key} has no {lacking[0]}", where=where, remedy=f"write {example}")
    value, unit = table["value"], table["unit"]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise FusionError(f"{key}: value {value!r} is no number", where=where, remedy=f"write {example}")
    if value < 0 or (value == 0 and key in POSITIVE):
        raise FusionError(
            f"{key}: value {value} must be {'positive' if key in POSITIVE else 'zero or more'}", where=where, remedy=f"write {example}"
        )
    if key in COUNTS and value != int(value):
        raise FusionError(f"{key}: {value} is no whole number", where=where, remedy=f"write {example}")
    if unit not in units:
        raise FusionError(f"{key}: unit {unit!r}", where=where, remedy=f"known units of it: {', '.join(units)}")
    return Number(float(value), str(unit), str(table["source"]))


def save(device: Device, note: str = "") -> str:
    """The text of a device file: `loads(save(d), ...) == d`."""
    lines = [*(f"# {line}" for line in note.splitlines()), f'name = "{device.name}"', f"interval = {device.interval:g}"]
    for name, items in (("calibrated", device.calibrated), ("measured", device.measured)):
        lines.append(f"{name} = [{', '.join(_quoted(item) for item in items)}]")
    section = ""
    for key in ALL_KEYS:
        table, _, leaf = key.rpartition(".")
        lines += ["", f"[{table}]"] if table != section else []
        section = table
        n = device.numbers[key]
        lines.append(f"{leaf} = {{ value = {n.value:.6g}, unit = {_quoted(n.unit)}, source = {_quoted(n.source)} }}")
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def describe(device: Device) -> str:
    """All numbers, one a line: key, value, unit, source."""
    return "\n".join(f"{k:22} {n.value:>10g} {n.unit:8} {n.source}" for k, n in device.numbers.items())
