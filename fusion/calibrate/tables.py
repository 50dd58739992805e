"""Measured latencies from files: our own CSV, and what the profilers of CANN and torch_npu write.

    ours                 label,launches,us      launches: kernel labels joined by +
    OpBasicInfo.csv      msprof op: Op Name, Task Duration(us)
    op_summary_*.csv     msprof: Op Name, Task Duration(us)
    kernel_details.csv   torch_npu profiler: Name, Duration(us)

Columns vary by CANN version: a column is found by any of its known names, without regard to case and spaces. Cells that are N/A or
empty are skipped, so are trailing commas; names like `dk_dq_kernel_kernel` lose their ends.
"""

from __future__ import annotations

import csv
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fusion.calibrate.own import is_own
from fusion.errors import FusionError, did_you_mean

NAME = ("opname", "name", "kernelname", "op_name")
TIME = ("taskduration(us)", "duration(us)", "taskduration", "duration", "time(us)", "task_duration(us)")
OURS = ("label", "launches", "us")
EXPECTED = "label,launches,us (ours), or Op Name and Task Duration(us) (msprof), or Name and Duration(us) (torch_npu)"
EMPTY = ("", "n/a", "na", "-", "nan", "null")


@dataclass(frozen=True)
class Measured:
    """One measured latency, and the labels of the kernels that it is the sum of."""

    label: str
    us: float
    launches: tuple[str, ...]


def _rows(path: Path) -> tuple[list[str], list[list[str]]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise FusionError("not a text file", where=str(path), remedy=f"give a CSV file with the columns {EXPECTED}") from None
    except OSError as error:
        raise FusionError(
            f"cannot be read: {error.strerror}", where=str(path), remedy=f"give a CSV file with the columns {EXPECTED}"
        ) from None
    lines = [r for r in csv.reader(text.splitlines()) if any(c.strip() for c in r)]
    if not lines:
        raise FusionError("the file is empty", where=str(path), remedy=f"expected the columns {EXPECTED}")
    return [c.strip() for c in lines[0]], lines[1:]


def _shown(header: Sequence[str]) -> str:
    more = f" and {len(header) - 12} more" if len(header) > 12 else ""
    return "the columns " + ", ".join(column[:30] or "(no name)" for column in header[:12]) + more


def _plain(column: str) -> str:
    return column.lower().replace(" ", "")


def _column(header: Sequence[str], names: Sequence[str]) -> int | None:
    plain = [_plain(c) for c in header]
    return next((plain.index(n) for n in names if n in plain), None)


def _number(cell: str, where: str) -> float | None:
    text = cell.strip().strip('"').replace("\t", "")
    if text.lower() in EMPTY:
        return None
    try:
        value = float(text)
    except ValueError:
        raise FusionError(f"{text!r} is no time", where=where, remedy="write microseconds as a number, or N/A") from None
    if value < 0 or not math.isfinite(value):
        raise FusionError(f"{text} is no time", where=where, remedy="write microseconds as a positive number, or N/A")
    return value or None


def is_ours(path: Path) -> bool:
    header, _ = _rows(path)
    return {"label", "us"} <= {_plain(c) for c in header}


def read_ours(path: Path) -> list[Measured]:
    """Our CSV; without a column `launches` a row's label is the kernel's."""
    header, lines = _rows(path)
    at = {name: _column(header, (name,)) for name in OURS}
    if at["label"] is None or at["us"] is None:
        raise FusionError(f"found {_shown(header)}", where=str(path), remedy=f"expected the columns {', '.join(OURS)}")
    found = list[Measured]()
    for number, line in enumerate(lines, 2):
        label, us = _cell(line, at["label"]), _number(_cell(line, at["us"]), f"{path}:{number}")
        names = _cell(line, at["launches"]) if at["launches"] is not None else label
        if us is not None:
            found.append(Measured(label, us, tuple(n.strip() for n in names.split("+"))))
    return found


def _cell(line: Sequence[str], at: int | None) -> str:
    return line[at].strip() if at is not None and at < len(line) else ""


def kernel_of(name: str) -> str:
    """`dk_dq_kernel_kernel` or `dk_dq_kernel0` -> `dk_dq`."""
    while True:
        shorter = name.removesuffix("_0").removesuffix("_kernel0").removesuffix("_kernel").removesuffix("_mix_aic").removesuffix("_mix_aiv")
        if shorter == name or not shorter:
            return name
        name = shorter


def read_profile(path: Path, *, drop_first: bool = True) -> dict[str, list[float]]:
    """Durations (us) by kernel from a profiler's CSV. The first launch of each kernel is dropped if there are more: it pays for loading."""
    header, lines = _rows(path)
    name, time = _column(header, NAME), _column(header, TIME)
    if name is None or time is None:
        raise FusionError(
            f"no column with names or none with times; found {_shown(header)}", where=str(path), remedy=f"expected the columns {EXPECTED}"
        )
    found: dict[str, list[float]] = {}
    for number, line in enumerate(lines, 2):
        us = _number(_cell(line, time), f"{path}:{number}")
        if us is not None and _cell(line, name):
            found.setdefault(kernel_of(_cell(line, name)), []).append(us)
    return {k: v[1:] if drop_first and len(v) > 1 else v for k, v in found.items()}


def read(path: Path, mapping: Mapping[str, str] | None = None) -> list[Measured]:
    """Any known file. `mapping` gives the kernel label of a profiled name; a name without one must be a label itself."""
    if is_ours(path):
        return read_ours(path)
    known = mapping or {}
    return [Measured(name, statistics.median(times), (known.get(name, name),)) for name, times in read_profile(path).items()]


def mapped(given: Sequence[str]) -> dict[str, str]:
    """`--map dk_dq=6/dk_dq` -> {"dk_dq": "6/dk_dq"}."""
    found: dict[str, str] = {}
    for item in given:
        name, sign, label = item.partition("=")
        if not sign or not name or not label:
            raise FusionError(f"--map {item!r}", where="calibrate", remedy="write --map PROFILED_NAME=KERNEL_LABEL")
        found[kernel_of(name)] = label
    return found


def only_known(rows: Sequence[Measured], labels: Sequence[str]) -> list[Measured]:
    """Rows whose launches all have a label. Raises FusionError if none has, naming what was found and what is known."""
    if not rows:
        raise FusionError("no row with a time", where="calibrate", remedy="every cell with a time is empty, N/A or 0: measure again")
    good = [r for r in rows if all(k in labels or is_own(k) for k in r.launches)]
    if not good:
        names = sorted({k for r in rows for k in r.launches})
        shown = ", ".join(names[:8])
        raise FusionError(
            f"no launch has a known kernel: {shown}",
            where="calibrate",
            remedy=did_you_mean(
                names[0], labels, "write --map NAME=LABEL with one of `fusion-plan calibrate --labels`, or --map NAME=path/to/kernel.py"
            ),
        )
    return good
