"""A test of the emitted wrapper for use on a machine with an NPU."""

from __future__ import annotations

from fusion.emit.hostprogram import HostProgram
from fusion.emit.layout import ambiguous, fit
from fusion.emit.program import Program

TEMPLATE = '''"""{name} on an NPU: the wrapper's results against the operator evaluated in float64 from graph.txt."""

import sys
from pathlib import Path

import pytest
import torch

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

pytest.importorskip("torch_npu")
host = pytest.importorskip("host")


def drawn(shape, dtype, generator):
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(0, 2, shape, generator=generator).to(dtype)


def inputs():
    """Normal numbers of the shapes and dtypes that the kernels take; zeros and ones where those are integers."""
    generator = torch.Generator().manual_seed(0)
    return {{name: drawn(shape, dtype, generator) for name, (shape, dtype) in host.INPUTS.items()}}


def run(tensors):
    """All results by name."""
{body}


def test_{name}():
    from fusion.graph import from_text
    from fusion.graph.evaluate import evaluate
    from fusion.precision import compare

    tensors = inputs()
    golden = evaluate(from_text((HERE / "graph.txt").read_text()), {{k: v.double() for k, v in tensors.items()}})
    for name, result in run({{k: v.npu() for k, v in tensors.items()}}).items():
        found = compare(result.cpu(), golden[name], str(result.dtype))
        assert found.passed, f"{{name}}: {{found}}"
'''


def device_test(program: Program) -> str:
    """The text of test_<operator>.py."""
    text = TEMPLATE.format(name=program.plan.graph.name, body="\n".join(_body(program.host)))
    lines = [x for line in text.splitlines() for x in fit(line)]
    return "\n".join([*ambiguous(r.value for p in program.host.phases for r in p.results), *lines]) + "\n"


def _body(host: HostProgram) -> list[str]:
    lines, results = list[str](), list[str]()
    for index, phase in enumerate(host.phases):
        args = [*(["saved"] if index else []), *(f'tensors["{i}"]' for i in phase.inputs)]
        names = [r.value for r in phase.results]
        results += names
        target = names[0] if len(names) == 1 else f"({', '.join(names)})" if names else "_"
        more = index + 1 < len(host.phases)
        target = f"{target}, saved" if more else target.removeprefix("(").removesuffix(")")
        lines.append(f"    {target} = host.{phase.name}({', '.join(args)})")
    return [*lines, f"    return {{{', '.join(f'{chr(34)}{r}{chr(34)}: {r}' for r in results)}}}"]
