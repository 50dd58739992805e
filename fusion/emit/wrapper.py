"""The host program as a Python module: kernels compiled on first use, one function a phase, an autograd Function where gradients fit."""

from __future__ import annotations

from fusion.emit.autograd import autograd_class
from fusion.emit.hostprogram import Allocate, Apply, Arg, HostProgram, Lanes, Launch, Phase, Reorder, Shape, Step, SumLanes
from fusion.emit.layout import WIDTH, ambiguous, fit, listed
from fusion.graph.types import Operand
from fusion.plan.types import Plan
from fusion.words import count

HEADER = """import importlib.util
from functools import cache
from pathlib import Path

import torch

KERNELS = Path(__file__).parent / "kernels"
"""

HELPERS = '''@cache
def _kernel(name):
    """The compiled kernel of kernels/<name>.py, on its first launch."""
    spec = importlib.util.spec_from_file_location(name, KERNELS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)()


def _checked(name, tensor):
    """The tensor, contiguous, if it is what the kernels were generated for."""
    shape, dtype = INPUTS[name]
    if tuple(tensor.shape) != shape or tensor.dtype != dtype:
        raise ValueError(f"{name} is {tuple(tensor.shape)} {tensor.dtype}, the kernels were generated for {shape} {dtype}")
    return tensor.contiguous()
'''

HOST_CODE: dict[str, str] = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "max": "torch.maximum({0}, {1})",
    "min": "torch.minimum({0}, {1})",
    "exp": "{0}.exp()",
    "log": "{0}.log()",
    "sqrt": "{0}.sqrt()",
    "rsqrt": "{0}.rsqrt()",
    "abs": "{0}.abs()",
    "relu": "{0}.relu()",
    "sigmoid": "{0}.sigmoid()",
    "copy": "{0}",
    "cast": "{0}",
    "select": "torch.where({0} != 0, {1}, {2})",
    "ge": "{0} >= {1}",
    "lt": "{0} < {1}",
    "sum": "{0}.sum({axes})",
    "amax": "{0}.amax({axes})",
    "amin": "{0}.amin({axes})",
}
"""The host's reading of operations: torch source."""


def wrapper_source(plan: Plan, host: HostProgram) -> str:
    """The text of host.py."""
    functions = [x for p in host.phases for x in ["", "", *_phase(plan, host, p)]]
    autograd = autograd_class(plan.graph, host)
    lines = [
        *ambiguous(dict(host.shapes)),
        f'"""{_title(host)}"""',
        "",
        *HEADER.splitlines(),
        *_inputs(host),
        "",
        "",
        *HELPERS.splitlines(),
        *functions,
    ]
    lines += ["", "", *autograd] if autograd else []
    return "\n".join(x for line in lines for x in fit(line)) + "\n"


def _title(host: HostProgram) -> str:
    calls = ", ".join(f"{p.name}({', '.join(_parameters(host, p))})" for p in host.phases)
    return f"Host side of {host.operator} in {count(host.launches, 'kernel')}: {calls}."


def _inputs(host: HostProgram) -> list[str]:
    entries = [f'    "{i.tensor}": ({_tuple(i.shape)}, torch.{i.dtype}),' for i in host.inputs]
    return ["INPUTS = {", *entries, "}"]


def _tuple(shape: Shape) -> str:
    return repr(tuple(shape))


def _parameters(host: HostProgram, phase: Phase) -> list[str]:
    return [*(["saved"] if phase is not host.phases[0] else []), *phase.inputs]


def _phase(plan: Plan, host: HostProgram, phase: Phase) -> list[str]:
    index = host.phases.index(phase)
    results = [r.value for r in phase.results]
    later = ", and the tensors that the next phase needs" if phase.saved else ""
    doc = f'    """{", ".join(results) or "Nothing yet"}{later}."""'
    lines = [f"def {phase.name}({', '.join(_parameters(host, phase))}):", *([doc] if len(doc) <= 140 else [])]
    if index:
        lines += _unpacked(list(host.phases[index - 1].saved))
    lines += [f'    {n} = _checked("{n}", {n})' for n in phase.inputs]
    lines += _device(host, phase, index)
    for step in phase.steps:
        lines += _step(plan, host, step)
    returned = [_result(host, r.tensor, r.shape) for r in phase.results]
    return lines + _return(returned, list(phase.saved), index + 1 < len(host.phases))


def _unpacked(saved: list[str]) -> list[str]:
    if not saved:
        return []
    line = f"    {', '.join(saved)} = saved"
    return [line] if len(saved) > 1 and len(line) <= WIDTH else listed("    (", saved, ",) = saved" if len(saved) == 1 else ") = saved")


def _device(host: HostProgram, phase: Phase, index: int) -> list[str]:
    if not any(isinstance(s, Allocate) for s in phase.steps):
        return []
    source = phase.inputs[0] if phase.inputs else host.phases[index - 1].saved[0]
    return [f"    device = {source}.device"]


def _result(host: HostProgram, tensor: str, shape: Shape) -> str:
    return tensor if dict(host.shapes)[tensor] == shape else f"{tensor}.reshape({_tuple(shape)})"


def _return(results: list[str], saved: list[str], more: bool) -> list[str]:
    if more:
        return [
            f"    results = {_group(results)}",
            *listed("    saved = (", saved, ",)" if len(saved) == 1 else ")"),
            "    return results, saved",
        ]
    return [f"    return {', '.join(results)}"]


def _group(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"({', '.join(items)})"


def _step(plan: Plan, host: HostProgram, step: Step) -> list[str]:
    if isinstance(step, Launch):
        kernel = next(k for k in plan.kernels if k.name == step.kernel)
        args = ", ".join(_arg(host, a) for a in step.args)
        return ["", f"    # {', '.join(kernel.stages)}", f'    _kernel("{step.kernel}")({args})']
    return [f"    {step.name} = {_made(host, step)}"]


def _arg(host: HostProgram, arg: Arg) -> str:
    return arg.tensor if dict(host.shapes)[arg.tensor] == arg.shape else f"{arg.tensor}.view({_tuple(arg.shape)})"


def _made(host: HostProgram, step: Allocate | Lanes | SumLanes | Reorder | Apply) -> str:
    if isinstance(step, Allocate):
        return f"torch.{'zeros' if step.zero else 'empty'}({_tuple(step.shape)}, dtype=torch.{step.dtype}, device=device)"
    if isinstance(step, Lanes):
        return f"{step.source}[..., None].expand(*{step.source}.shape, {step.count}).contiguous()"
    if isinstance(step, SumLanes):
        return f"{step.source}.sum(-1)"
    return _reordered(host, step) if isinstance(step, Reorder) else _applied(host, step)


def _reordered(host: HostProgram, step: Reorder) -> str:
    permuted = step.order != tuple(range(len(step.order)))
    text = step.source
    if permuted:
        text += f".reshape({_tuple(step.split)})" if dict(host.shapes)[step.source] != step.split else ""
        text += f".permute({_tuple(step.order)})"
    crop = f"[{', '.join(f':{n}' for n in step.crop)}]" if step.crop else ""
    whole = f".reshape({_tuple(step.shape)})" if not step.dense or len(step.shape) != len(step.order) else ""
    return f"{text}{whole}{crop}{'.contiguous()' if step.dense else ''}"


def _applied(host: HostProgram, step: Apply) -> str:
    """The operation, rounded to its dtype where torch would give another."""
    text = HOST_CODE[step.fn].format(*(_operand(a, step) for a in step.args), axes=_tuple(step.axes))
    dtypes = host.dtypes()
    if all(dtypes[a] == step.dtype for a in step.args if isinstance(a, str)):
        return text
    plain = text.isidentifier() or text.endswith(")")
    return f"{text if plain else f'({text})'}.to(torch.{step.dtype})"


def _operand(arg: Operand, step: Apply) -> str:
    if isinstance(arg, str):
        return arg
    like = next(a for a in step.args if isinstance(a, str))
    return f"torch.full_like({like}, {arg})" if step.fn in ("max", "min") else repr(arg)
