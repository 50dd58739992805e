"""The files of a plan's output folder, by their path inside."""

from __future__ import annotations

from collections.abc import Iterable

from fusion.emit.program import Program
from fusion.graph import to_text as graph_text
from fusion.output.devicetest import device_test
from fusion.plan.jsonform import to_json
from fusion.plan.text import to_text
from fusion.toolchain.model import Lowered


def program_files(program: Program, lowered: Iterable[Lowered]) -> dict[str, str]:
    """Sources, plan and graph; what the compiler made of the kernels, as far as it was asked."""
    name = program.plan.graph.name
    files = {f"kernels/{k.name}.py": k.source for k in program.kernels}
    files["host.py"] = program.wrapper
    files[f"test_{name}.py"] = device_test(program)
    files["plan.txt"] = to_text(program.plan)
    files["plan.json"] = to_json(program.plan) + "\n"
    files["graph.txt"] = graph_text(program.plan.graph)
    for result in lowered:
        files |= _generated(result)
    return files


def _generated(result: Lowered) -> dict[str, str]:
    made = {
        f"tir/{result.name}.py": result.tir,
        f"ascendc/{result.name}.cpp": result.ascendc or "",
        f"pto/{result.name}.cpp": result.pto or "",
    }
    return {path: text for path, text in made.items() if text}
