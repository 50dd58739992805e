"""The file's own comparison, run against simulated results: see `reference_runner` for how."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from fusion.check.facts import Facts
from fusion.check.inspection import Instance
from fusion.check.report import Finding
from fusion.toolchain import Lowered, Param
from fusion.words import count

COMPARISON = re.compile(r"\bassert_close\b|\ballclose\b|\bassert_allclose\b|\bassert_array|^\s*assert\b", re.MULTILINE)
SECONDS = 90.0


@dataclass(frozen=True)
class Subject:
    """One kernel that the file may call."""

    instance: Instance
    facts: Facts
    lowered: Lowered


@dataclass(frozen=True)
class Compared:
    """What came of it: for the kernels in `called`, a finding if the file's comparison failed, else a note."""

    called: frozenset[int]
    finding: Finding | None
    note: str


def has_comparison(text: str) -> bool:
    """Whether a file compares something with something."""
    return COMPARISON.search(text) is not None


def compare(path: Path, text: str, subjects: Sequence[Subject]) -> Compared | None:
    """Run the file's comparison; None if it calls no kernel."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        kernels = [_kernel(index, subject) for index, subject in enumerate(subjects)]
        job = {"path": str(path.resolve()), "text": text, "result": str(result), "kernels": kernels}
        (Path(folder) / "job.json").write_text(json.dumps(job), encoding="utf-8")
        try:
            command = [sys.executable, "-m", "fusion.check.reference_runner", str(Path(folder) / "job.json")]
            subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return Compared(frozenset(range(len(subjects))), None, f"the file's own comparison did not end within {SECONDS:g} s")
        return _read(json.loads(result.read_text(encoding="utf-8"))) if result.exists() else None


def _kernel(index: int, subject: Subject) -> dict[str, object]:
    facts, instance, lowered = subject.facts, subject.instance, subject.lowered
    written = {name for touch in facts.touches for name in touch.writes}
    base: dict[str, object] = {"index": index, "factory": instance.factory, "args": dict(instance.args), "name": facts.program.name}
    return {**base, "ascendc": lowered.ascendc, "params": [_param(param, instance, lowered, written) for param in lowered.params]}


def _param(param: Param, instance: Instance, lowered: Lowered, written: set[str]) -> dict[str, object]:
    own = [p for p in lowered.params if p.role not in ("relay", "scalar")]
    index = own.index(param) if param in own else -1
    outputs, spaces = ({i % len(own) for i in indices} for indices in (instance.out_idx, instance.workspace_idx))
    use = "out" if index in outputs else "workspace" if index in spaces or param.role == "relay" else "given"
    base: dict[str, object] = {"name": param.name, "dtype": param.dtype, "shape": list(param.shape), "role": param.role}
    return {**base, "use": use, "written": param.name in written}


def _read(result: Mapping[str, object]) -> Compared | None:
    if not result["calls"]:
        return None
    called = frozenset(cast("list[int]", result["called"]))
    end = cast("Mapping[str, object]", result["end"])
    kind, message, line = str(end["kind"]), str(end["message"]), int(str(end["line"]))
    times = count(int(str(result["calls"])), "simulated call")
    if kind == "ended":
        return Compared(called, None, f"the file's own comparison passes on {times}")
    if kind == "differs":
        why = "the file compares the kernel's results with its reference; they were simulated"
        remedy = "correct the kernel, or the reference"
        return Compared(called, Finding("reference-differs", line, f"the file's own comparison fails: {message}", remedy, why, "wrong"), "")
    where = f" (line {line})" if line else ""
    return Compared(called, None, f"the file's own comparison was not run to its end after {times}: {message}{where}")
