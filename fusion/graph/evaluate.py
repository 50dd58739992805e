"""The torch reading of a stage graph: whole tensors, exact in float64 (the golden) or rounded as declared.

In "golden" every floating value is float64 and casts between floating dtypes do nothing. In "declared" every value is rounded to its
dtype and contractions accumulate in float32. With `by_phase` an output that a later launch phase takes up again comes back rounded: it
is an input of that phase, in the dtype that the caller has. Scans run in steps of `scan_step` indices (or the dim's own `step`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import networkx as nx
import torch

from fusion.errors import FusionError
from fusion.graph.ops import OPS
from fusion.graph.stagegraph import StageGraph
from fusion.graph.types import Affine, Op, Operand, Stage, Value

Precision = Literal["golden", "declared"]
Env = dict[str, torch.Tensor]
Window = dict[str, tuple[int, int]]  # dim -> (first index, number of indices) of the current step


def torch_dtype(name: str) -> torch.dtype:
    """The torch dtype of a dtype name of the language."""
    found = getattr(torch, name)
    assert isinstance(found, torch.dtype)
    return found


def external_shape(graph: StageGraph, value: Value) -> tuple[int, ...]:
    """Shape of the tensor that a caller passes or gets."""
    return tuple(graph.size(axis) for axis in value.layout)


def evaluate(
    graph: StageGraph,
    inputs: Mapping[str, torch.Tensor],
    precision: Precision = "golden",
    scan_step: int | None = None,
    by_phase: bool = False,
) -> dict[str, torch.Tensor]:
    """Outputs by name, in the caller's layout. Raises FusionError for a missing input or a wrong shape."""
    return {v.name: external(graph, v, env) for env in [evaluate_all(graph, inputs, precision, scan_step, by_phase)] for v in graph.outputs}


def external(graph: StageGraph, value: Value, env: Mapping[str, torch.Tensor]) -> torch.Tensor:
    return env[value.name].reshape(external_shape(graph, value))


def evaluate_all(
    graph: StageGraph,
    inputs: Mapping[str, torch.Tensor],
    precision: Precision = "golden",
    scan_step: int | None = None,
    by_phase: bool = False,
) -> dict[str, torch.Tensor]:
    """Every value by name over its dims: what a test compares step by step."""
    evaluator = _Evaluator(graph, precision)
    env: Env = {v.name: evaluator.bring_in(v, inputs) for v in graph.inputs}
    exact: Env = {}
    phase = 0
    for names in sorted(nx.topological_sort(graph.runs), key=lambda names: graph.phases[names[0]]):
        stages = tuple(graph.stage(n) for n in names)
        if by_phase and graph.phases[names[0]] > phase:
            phase = graph.phases[names[0]]
            fresh = [o for o in graph.saved if o in env and o not in exact]
            exact.update({o: env[o] for o in fresh})
            env.update({o: env[o].to(torch_dtype(graph.value(o).dtype)).to(env[o].dtype) for o in fresh})
        if stages[0].scan:
            evaluator.run_scan(stages, env, scan_step)
        else:
            evaluator.run_stage(stages[0], env, {})
    return env | exact


class _Evaluator:
    def __init__(self, graph: StageGraph, precision: Precision) -> None:
        self.graph = graph
        self.precision = precision

    def bring_in(self, value: Value, inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        if value.name not in inputs:
            raise FusionError(f"input {value.name} is missing", where=self.graph.name)
        tensor, shape = inputs[value.name], external_shape(self.graph, value)
        if tuple(tensor.shape) != shape:
            raise FusionError(f"input {value.name} has shape {tuple(tensor.shape)}, expected {shape}", where=self.graph.name)
        return self.rounded(tensor, value.dtype).reshape(tuple(self.graph.dim(d).size for d in value.dims))

    def rounded(self, tensor: torch.Tensor, dtype: str) -> torch.Tensor:
        wanted = torch_dtype(dtype)
        if self.precision == "golden" and wanted.is_floating_point:
            return tensor.to(torch.float64)
        return tensor.to(wanted)

    def run_stage(self, stage: Stage, env: Env, window: Window) -> None:
        for op in stage.body:
            env[op.out] = self.run_op(op, env, window)

    def run_scan(self, stages: tuple[Stage, ...], env: Env, scan_step: int | None) -> None:
        along = self.graph.dim(stages[0].scan)
        step = along.step or scan_step or along.size
        states = [c for c in self.graph.carries if self.graph.producer(c.next) in {s.name for s in stages}]
        local: Env = {c.state: self.initial(c.init, self.graph.value(c.state), env) for c in states}
        pieces: dict[str, list[torch.Tensor]] = {}
        for first in range(0, along.size, step):
            window = {along.name: (first, min(step, along.size - first))}
            view: Env = {k: self.narrowed(k, t, window) for k, t in env.items()} | local
            for stage in stages:
                self.run_stage(stage, view, window)
            for out in (o for s in stages for o in s.writes):
                pieces.setdefault(out, []).append(view[out])
            local = {c.state: view[c.next] for c in states}
        for out, parts in pieces.items():
            dims = self.graph.value(out).dims
            env[out] = torch.cat(parts, dim=dims.index(along.name)) if along.name in dims else parts[-1]

    def initial(self, init: Operand, state: Value, env: Env) -> torch.Tensor:
        shape = [self.graph.dim(d).size for d in state.dims]
        if isinstance(init, str):
            return self.aligned(env[init], self.graph.value(init).dims, state.dims).expand(shape)
        return self.rounded(torch.full(shape, init, dtype=torch.float64), state.dtype)

    def narrowed(self, name: str, tensor: torch.Tensor, window: Window) -> torch.Tensor:
        for dim, (first, count) in window.items():
            dims = self.graph.value(name).dims
            if dim in dims:
                tensor = tensor.narrow(dims.index(dim), first, count)
        return tensor

    def aligned(self, tensor: torch.Tensor, dims: tuple[str, ...], to: tuple[str, ...]) -> torch.Tensor:
        """The tensor permuted to the order `to`, with an axis of 1 for each dim that it lacks."""
        order = [d for d in to if d in dims]
        tensor = tensor.permute([dims.index(d) for d in order])
        return tensor.reshape([tensor.shape[order.index(d)] if d in order else 1 for d in to])

    def operand(self, arg: Operand, to: tuple[str, ...], env: Env, like: torch.dtype) -> torch.Tensor:
        if isinstance(arg, str):
            return self.aligned(env[arg], self.graph.value(arg).dims, to)
        return torch.tensor(arg, dtype=like).reshape([1] * len(to))

    def extent(self, dim: str, window: Window) -> tuple[int, int]:
        return window.get(dim, (0, self.graph.dim(dim).size))

    def positions(self, dim: str, to: tuple[str, ...], window: Window) -> torch.Tensor:
        first, count = self.extent(dim, window)
        return self.aligned(torch.arange(first, first + count), (dim,), to)

    def holds(self, conditions: tuple[Affine, ...], to: tuple[str, ...], window: Window) -> torch.Tensor:
        """The conjunction of the conditions over the dims `to`."""
        result = torch.ones([1] * len(to), dtype=torch.bool)
        for c in conditions:
            total = torch.full([1] * len(to), c.const)
            for dim, coefficient in c.terms:
                total = total + coefficient * self.positions(dim, to, window)
            result = result & (total >= 0)
        return result

    def run_op(self, op: Op, env: Env, window: Window) -> torch.Tensor:
        value = self.graph.value(op.out)
        form = OPS[op.fn].form
        if form == "contract":
            result = self.contract(op, value, env)
        elif form == "reduce":
            source = self.graph.value(op.reads[0])
            axes = tuple(source.dims.index(d) for d in op.over)
            kept = tuple(d for d in source.dims if d not in op.over)
            result = self.aligned(OPS[op.fn].meaning(env[op.reads[0]], axes), kept, value.dims)
        elif form == "index":
            result = self.positions(op.over[0], value.dims, window)
        elif form == "gather":
            result = self.gather(op, value, env)
        elif form == "scatter":
            result = self.scatter(op, value, env)
        elif form == "topk":
            result = self.topk(op, value, env)
        else:
            result = self.elementwise(op, value, env, window)
        return self.rounded(result, value.dtype)

    def elementwise(self, op: Op, value: Value, env: Env, window: Window) -> torch.Tensor:
        like = next((env[a].dtype for a in op.reads[-1:]), torch.float64)
        args = [self.operand(a, value.dims, env, like) for a in op.args]
        if op.fn == "where":
            args.insert(0, self.holds(op.where, value.dims, window))
        if op.fn == "select":
            args[0] = args[0] != 0
        result = OPS[op.fn].meaning(*args)
        if op.fn == "cast" and result.dtype != torch.bool and value.dtype != "bool" and not torch_dtype(value.dtype).is_floating_point:
            bounds = torch.iinfo(torch_dtype(value.dtype))
            whole = result.round() if result.is_floating_point() else result  # to nearest even, as a cast to a float rounds
            result = whole.clamp(bounds.min, bounds.max)
        return result.expand([self.extent(d, window)[1] for d in value.dims])

    def contract(self, op: Op, value: Value, env: Env) -> torch.Tensor:
        letters = {d: chr(ord("a") + i) for i, d in enumerate(self.graph.op_dims(op))}
        names = [a for a in op.args if isinstance(a, str)]
        spec = ",".join("".join(letters[d] for d in self.graph.value(a).dims) for a in names)
        exact = torch.float64 if self.precision == "golden" else torch.float32
        operands = [env[a].to(torch.int64 if not env[a].is_floating_point() else exact) for a in names]
        return torch.einsum(f"{spec}->{''.join(letters[d] for d in value.dims)}", *operands)

    def gather(self, op: Op, value: Value, env: Env) -> torch.Tensor:
        source, index = (self.graph.value(a) for a in op.args if isinstance(a, str))
        size = env[source.name].shape[source.dims.index(op.over[0])]
        places = env[index.name].long()
        batch = tuple(d for d in source.dims if d in index.dims)
        kept = tuple(d for d in source.dims if d not in batch and d != op.over[0])
        data = self.aligned(env[source.name], source.dims, (*batch, op.over[0], *kept))
        order = (*batch, *(d for d in index.dims if d not in batch))
        places = self.aligned(places, index.dims, order)
        flat_data = data.reshape(-1, size, *data.shape[len(batch) + 1 :])
        flat_places = places.reshape(flat_data.shape[0], -1)
        rows = torch.arange(flat_data.shape[0])[:, None]
        inside = (flat_places >= 0) & (flat_places < size)
        picked = flat_data[rows, flat_places.clamp(0, size - 1)]
        picked = torch.where(inside.reshape(*inside.shape, *[1] * len(kept)), picked, torch.zeros((), dtype=picked.dtype))
        result = picked.reshape(*places.shape, *data.shape[len(batch) + 1 :])
        return self.aligned(result, (*order, *kept), value.dims)

    def scatter(self, op: Op, value: Value, env: Env) -> torch.Tensor:
        source, index = (self.graph.value(a) for a in op.args if isinstance(a, str))
        size = self.graph.dim(op.attr).size
        summed = op.over
        batch = tuple(d for d in index.dims if d not in summed)
        kept = tuple(d for d in source.dims if d not in index.dims)
        data = self.aligned(env[source.name], source.dims, (*batch, *summed, *kept))
        places = self.aligned(env[index.name].long(), index.dims, (*batch, *summed))
        flat = data.reshape(math.prod(data.shape[: len(batch)]), -1, *data.shape[len(batch) + len(summed) :])
        at = places.reshape(flat.shape[0], -1)
        inside = (at >= 0) & (at < size)
        result = torch.zeros(flat.shape[0], size, *flat.shape[2:], dtype=flat.dtype)
        for row in range(flat.shape[0]):
            result[row].index_add_(0, at[row][inside[row]], flat[row][inside[row]])
        shape = [*data.shape[: len(batch)], size, *data.shape[len(batch) + len(summed) :]]
        return self.aligned(result.reshape(shape), (*batch, op.attr, *kept), value.dims)

    def topk(self, op: Op, value: Value, env: Env) -> torch.Tensor:
        source = self.graph.value(op.reads[0])
        axis = source.dims.index(op.over[0])
        count = self.graph.dim(op.attr).size
        ordered, places = torch.sort(env[source.name], dim=axis, descending=True, stable=True)
        picked = (places if op.fn == "topk_index" else ordered).narrow(axis, 0, count)
        return self.aligned(picked, tuple(op.attr if d == op.over[0] else d for d in source.dims), value.dims)
