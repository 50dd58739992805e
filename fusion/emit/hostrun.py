"""Runs a host program on CPU tensors, with the launches left to the caller (the simulator): what verification compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch

from fusion.emit.hostprogram import Allocate, Apply, HostProgram, Input, Lanes, Launch, Reorder, Step, SumLanes
from fusion.emit.program import KernelProgram, Program
from fusion.errors import FusionError
from fusion.graph.evaluate import torch_dtype
from fusion.graph.ops import OPS
from fusion.graph.types import Operand

Tensors = dict[str, torch.Tensor]
LaunchFn = Callable[[KernelProgram, Tensors], None]  # writes its results into the tensors, which come by parameter name


def run_host(program: Program, inputs: Mapping[str, torch.Tensor], launch: LaunchFn) -> Tensors:
    """The outputs by name, in the caller's layout. Raises FusionError for an input that is missing or has another shape."""
    by_name = {k.name: k for k in program.kernels}
    env: Tensors = {i.tensor: _checked(program.host, i, inputs) for i in program.host.inputs}
    results: Tensors = {}
    for phase in program.host.phases:
        for step in phase.steps:
            if isinstance(step, Launch):
                launch(by_name[step.kernel], {a.param: env[a.tensor].view(a.shape) for a in step.args})
            else:
                env[step.name] = _made(step, env)
        results.update({r.value: env[r.tensor].reshape(r.shape) for r in phase.results})
    return results


def _checked(host: HostProgram, wanted: Input, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
    if wanted.value not in inputs:
        raise FusionError(f"input {wanted.value} is missing", where=host.operator)
    tensor = inputs[wanted.value]
    if tuple(tensor.shape) != wanted.shape:
        raise FusionError(f"input {wanted.value} has shape {tuple(tensor.shape)}, expected {wanted.shape}", where=host.operator)
    return tensor.to(torch_dtype(wanted.dtype)).contiguous()


def _made(step: Step, env: Tensors) -> torch.Tensor:
    if isinstance(step, Allocate):
        return torch.zeros(step.shape, dtype=torch_dtype(step.dtype)) if step.zero else _garbage(step)
    if isinstance(step, Lanes):
        return env[step.source].unsqueeze(-1).expand(*env[step.source].shape, step.count).contiguous()
    if isinstance(step, SumLanes):
        return env[step.source].sum(-1)
    if isinstance(step, Reorder):
        whole = env[step.source].reshape(step.split).permute(step.order).reshape(step.shape)
        whole = whole[tuple(slice(n) for n in step.crop)] if step.crop else whole
        return whole.contiguous() if step.dense else whole
    assert isinstance(step, Apply)
    return applied(step, env)


def _garbage(step: Allocate) -> torch.Tensor:
    """Uninitialised memory that shows: NaN, so that nobody can rely on zeros."""
    dtype = torch_dtype(step.dtype)
    return torch.full(step.shape, float("nan"), dtype=dtype) if dtype.is_floating_point else torch.empty(step.shape, dtype=dtype)


def applied(step: Apply, env: Tensors) -> torch.Tensor:
    """One operation of a host stage, by its torch meaning."""
    like = next(env[a] for a in step.args if isinstance(a, str))

    def tensor(arg: Operand) -> torch.Tensor:
        return env[arg] if isinstance(arg, str) else torch.full((), arg, dtype=like.dtype)

    args = [tensor(a) for a in step.args]
    if step.fn == "select":
        args[0] = args[0] != 0
    result = OPS[step.fn].meaning(args[0], step.axes) if step.axes else OPS[step.fn].meaning(*args)
    return result.to(torch_dtype(step.dtype))
