"""Verdicts remembered by content: the same generated code on the same inputs is not run twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import cast

import fusion.precision
import fusion.simulator
from fusion.emit.program import Program
from fusion.files import keep_newest, write_whole
from fusion.graph import to_text
from fusion.paths import home
from fusion.precision import Comparison, Tolerance
from fusion.simulator import Finding
from fusion.simulator.findings import Verdict
from fusion.toolchain import Lowered
from fusion.verify.places import Origin
from fusion.verify.run import Located, PlanVerdict, RunOptions

KEEP = 400  # verdicts


@cache
def _code() -> str:
    """A hash of everything that judges: the simulator, the precision standard, and this package."""
    roots = (Path(str(fusion.simulator.__file__)).parent, Path(__file__).parent, Path(str(fusion.precision.__file__)))
    files = sorted(f for r in roots for f in (r.rglob("*") if r.is_dir() else (r,)) if f.suffix in (".py", ".hpp", ".h", ".inl", ".cpp"))
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()


def key(program: Program, lowered: Mapping[str, Lowered], inputs: str, options: RunOptions) -> str:
    """The name of a verdict: operator, host program, generated code, how the inputs are drawn, how it runs, and who judges."""
    parts = [_code(), to_text(program.plan.graph), program.wrapper, inputs, repr(options)]
    parts += [str(lowered[k.name].ascendc) for k in program.kernels]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _folder() -> Path:
    return home() / "cache" / "verdicts"


def remembered(name: str) -> PlanVerdict | None:
    """The verdict, if it is known and readable."""
    try:
        data = cast("dict[str, object]", json.loads((_folder() / f"{name}.json").read_text()))
        return _read(data)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remember(name: str, verdict: PlanVerdict) -> None:
    """Writes the verdict whole or not at all, and forgets the oldest beyond KEEP."""
    data = {
        "verdict": verdict.verdict,
        "seconds": verdict.seconds,
        "outputs": {n: asdict(c) for n, c in verdict.outputs.items()},
        "findings": [asdict(f) for f in verdict.findings],
    }
    write_whole(_folder() / f"{name}.json", json.dumps(data))
    keep_newest(_folder().glob("*.json"), KEEP)


def _read(data: Mapping[str, object]) -> PlanVerdict:
    outputs = {n: _comparison(c) for n, c in cast("dict[str, dict[str, object]]", data["outputs"]).items()}
    findings = tuple(_located(f) for f in cast("list[dict[str, object]]", data["findings"]))
    return PlanVerdict(cast(Verdict, data["verdict"]), outputs, findings, float(str(data["seconds"])))


def _comparison(data: Mapping[str, object]) -> Comparison:
    required = Tolerance(**cast("dict[str, object]", data["required"]))  # pyright: ignore[reportArgumentType]
    return Comparison(**{**data, "required": required})  # pyright: ignore[reportArgumentType]


def _located(data: Mapping[str, object]) -> Located:
    def place(key: str) -> Origin | None:
        found = cast("dict[str, object] | None", data[key])
        return Origin(**found) if found else None  # pyright: ignore[reportArgumentType]

    finding = Finding.from_json(cast("dict[str, object]", data["finding"]))
    return Located(str(data["kernel"]), finding, place("first"), place("second"), str(data["handoff"]))
