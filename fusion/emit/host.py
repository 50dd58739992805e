"""From a plan and its kernels to the host program: allocations, launches in order, host stages, results in the caller's layout."""

from __future__ import annotations

import keyword
from dataclasses import dataclass, field

from fusion.emit.gm import GmTensor, gm_tensor
from fusion.emit.hostprogram import Allocate, Apply, Arg, HostProgram, Input, Lanes, Launch, Phase, Reorder, Result, Shape, Step, SumLanes
from fusion.emit.phases import Phases
from fusion.emit.program import GmParam, KernelProgram
from fusion.errors import FusionError
from fusion.graph import Op, Value
from fusion.graph.ops import OPS
from fusion.plan.tiling import Tiling
from fusion.plan.types import Kernel, Plan

TAKEN = {"torch", "Path", "cache", "importlib", "saved", "device", "ctx"}  # names that the wrapper uses itself
ON_HOST = ("elementwise", "select", "reduce")


def host_program(plan: Plan, kernels: tuple[KernelProgram, ...]) -> HostProgram:
    """The host's part of a plan. Raises FusionError for a host stage that is no plain torch arithmetic."""
    return _Host(plan, {k.name: k for k in kernels}).program()


@dataclass
class _Host:
    """`held` maps a value to the tensor that holds it whole, `padded` to the one with lanes that kernels see."""

    plan: Plan
    kernels: dict[str, KernelProgram]
    held: dict[str, str] = field(default_factory=dict[str, str])
    padded: dict[str, str] = field(default_factory=dict[str, str])
    packed: dict[str, GmTensor] = field(default_factory=dict[str, GmTensor])  # held values that are stored tile by tile
    order: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])  # dims of a held value as stored
    shapes: dict[str, Shape] = field(default_factory=dict[str, Shape])
    steps: list[Step] = field(default_factory=list[Step])

    def program(self) -> HostProgram:
        phases = Phases(self.plan)
        inputs = tuple(self.bring_in(v) for v in self.plan.graph.inputs)
        by_phase, results = list[list[Step]](), list[tuple[Result, ...]]()
        for number in range(phases.count):
            self.steps = []
            for kernel in phases.kernels(number):
                self.launch(kernel)
            for name in phases.on_host(number):
                self.run_stage(name)
            results.append(self.results(phases, number))
            by_phase.append(self.steps)
        arriving = [tuple(i.tensor for i in inputs if phases.input(i.value) == n) for n in range(phases.count)]
        saved = _saved(by_phase, arriving, results)
        made = tuple(Phase(*p) for p in zip(phases.names(), arriving, map(tuple, by_phase), results, saved, strict=True))
        return HostProgram(self.plan.graph.name, inputs, made, tuple(self.shapes.items()))

    # ---- tensors

    def named(self, label: str, shape: Shape) -> str:
        """A new tensor's name."""
        label = f"{label}_" if label in TAKEN or keyword.iskeyword(label) else label
        name, number = label, 2
        while name in self.shapes:
            name, number = f"{label}_{number}", number + 1
        self.shapes[name] = shape
        return name

    def external(self, v: Value) -> Shape:
        """The shape in which a caller passes or gets a value."""
        return tuple(self.plan.graph.size(axis) for axis in v.layout)

    def bring_in(self, v: Value) -> Input:
        shape = self.external(v)
        self.held[v.name], self.order[v.name] = self.named(v.name, shape), v.dims
        return Input(v.name, self.held[v.name], shape, v.dtype, v.after)

    def allocate(self, label: str, shape: Shape, dtype: str, zero: bool = False) -> str:
        name = self.named(label, shape)
        self.steps.append(Allocate(name, shape, dtype, zero))
        return name

    # ---- launches

    def launch(self, kernel: Kernel) -> None:
        program = self.kernels[kernel.name]
        made = {out for s in kernel.stages for out in self.plan.graph.stage(s).writes}
        args = tuple(Arg(p.name, self.argument(p, p.value in made), p.shape) for p in program.params)
        self.steps.append(Launch(kernel.name, args))
        for p in program.params:
            if p.value in made and p.value in self.padded and p.value not in self.held:
                self.held[p.value] = self.named(p.value, p.shape[:-1])
                self.steps.append(SumLanes(self.held[p.value], self.padded[p.value]))
                del self.padded[p.value]

    def argument(self, p: GmParam, made_here: bool) -> str:
        """The tensor for a parameter, allocated or given lanes where there is none yet."""
        if not p.value:
            return self.allocate(p.name, p.shape, p.dtype)
        lanes = p.lanes
        if made_here:
            return self.result_tensor(p, lanes)
        if not lanes:
            return self.held[p.value] if p.value in self.packed or p.order == self.order[p.value] else self.arranged(p)
        if p.value not in self.padded:
            self.padded[p.value] = self.named(f"{p.value}_lanes", p.shape)
            self.steps.append(Lanes(self.padded[p.value], self.held[p.value], p.shape[-1]))
        return self.padded[p.value]

    def arranged(self, p: GmParam) -> str:
        """A tensor with its axes in the order that a kernel wants, copied once."""
        key = f"{p.value} {' '.join(p.order)}"
        if key not in self.padded:
            graph, have = self.plan.graph, self.order[p.value]
            split = tuple(graph.dim(d).size for d in have)
            made = self.padded[key] = self.named(f"{p.value}_by_{'_'.join(p.order)}", tuple(graph.dim(d).size for d in p.order))
            order = tuple(have.index(d) for d in p.order)
            self.steps.append(Reorder(made, self.held[p.value], split, order, self.shapes[made], dense=True))
        return self.padded[key]

    def result_tensor(self, p: GmParam, lanes: bool) -> str:
        value = self.plan.graph.value(p.value)
        if lanes:
            self.padded[p.value] = self.allocate(f"{p.value}_lanes", p.shape, p.dtype, zero=True)
            self.order[p.value] = value.dims
            return self.padded[p.value]
        shape = self.external(value) if value.role == "output" else p.shape
        self.held[p.value] = self.allocate(p.value, shape, p.dtype, p.role == "atomic")
        tensor = gm_tensor(Tiling(self.plan.graph, self.plan.tiles), value)
        if tensor.packed:
            self.packed[p.value] = tensor
        self.order[p.value] = tuple(d for axis in tensor.axes for d in axis)
        return self.held[p.value]

    def unpack(self, stage: str, name: str) -> None:
        """A value that is stored tile by tile as a plain tensor, if all of its tiles are there."""
        tensor, graph = self.packed[name], self.plan.graph
        band = tensor.packed
        assert band
        units, (rows, width, *tile) = self.order[name], tensor.shape[-4:]
        if width != Tiling(graph, self.plan.tiles).trips(band.col):
            raise FusionError(f"only some tiles of {name} are stored", where=f"host stage {stage}", remedy="put the stage in a kernel")
        n = len(units)
        order = (*range(n), n, n + 2, n + 1, n + 3)
        self.order[name] = (*units, band.row, band.col)
        sizes = tuple(graph.dim(d).size for d in self.order[name])
        shape = (*sizes[:-2], rows * tile[0], width * tile[1])
        plain = self.named(f"{name}_whole", sizes)
        self.steps.append(Reorder(plain, self.held[name], tensor.shape, order, shape, sizes if sizes != shape else ()))
        self.held[name] = plain
        del self.packed[name]

    # ---- host stages

    def run_stage(self, name: str) -> None:
        for op in self.plan.graph.stage(name).body:
            if OPS[op.fn].form not in ON_HOST or op.fn == "where":
                raise FusionError(f"{op.out} = {op.fn} cannot run on the host", where=f"host stage {name}", remedy="put it in a kernel")
            self.apply(name, op)

    def apply(self, stage: str, op: Op) -> None:
        """An operation over whole tensors, aligned to the dims of its result (of its operand for a reduction)."""
        graph = self.plan.graph
        value = graph.value(op.out)
        reduces = OPS[op.fn].form == "reduce"
        dims = tuple(d for d in graph.value(op.reads[0]).dims) if reduces else value.dims
        args = tuple(self.aligned(stage, a, dims) if isinstance(a, str) else a for a in op.args)
        kept = tuple(d for d in dims if d not in op.over)
        self.held[op.out] = self.named(op.out, tuple(graph.dim(d).size for d in kept))
        self.order[op.out] = kept
        axes = tuple(dims.index(d) for d in op.over) if reduces else ()
        if not reduces and not any(set(graph.value(r).dims) == set(dims) for r in op.reads):
            raise FusionError(f"{op.out} broadcasts all of its operands", where=f"host stage {stage}", remedy="put it in a kernel")
        self.steps.append(Apply(self.held[op.out], op.fn, args, value.dtype, axes))

    def aligned(self, stage: str, name: str, dims: tuple[str, ...]) -> str:
        """The tensor of a value with its axes in the order `dims`, and an axis of 1 for each dim that it lacks."""
        if name in self.packed:
            self.unpack(stage, name)
        have, graph = self.order[name], self.plan.graph
        shape = tuple(graph.dim(d).size if d in have else 1 for d in dims)
        order = tuple(have.index(d) for d in dims if d in have)
        split = tuple(graph.dim(d).size for d in have)
        tensor = self.held[name]
        if order == tuple(range(len(have))) and self.shapes[tensor] == shape:
            return tensor
        view = self.named(f"{name}_view", shape)
        self.steps.append(Reorder(view, tensor, split, order, shape))
        return view

    # ---- results

    def results(self, phases: Phases, number: int) -> tuple[Result, ...]:
        graph, found = self.plan.graph, list[Result]()
        for v in graph.outputs:
            if phases.stage[graph.producer(v.name) or ""] == number:
                tensor = self.held[v.name] if self.order[v.name] == v.dims else self.aligned(v.name, v.name, v.dims)
                found.append(Result(v.name, tensor, self.external(v)))
        return tuple(found)


def _saved(steps: list[list[Step]], arriving: list[tuple[str, ...]], results: list[tuple[Result, ...]]) -> list[tuple[str, ...]]:
    """For every phase the tensors that exist after it and that a later one uses."""
    used = [_used(s) | {r.tensor for r in rs} for s, rs in zip(steps, results, strict=True)]
    alive, found = list[str](), list[tuple[str, ...]]()
    for number, phase in enumerate(steps):
        alive += [*arriving[number], *(n for s in phase for n in _made(s))]
        later = set[str]().union(*used[number + 1 :])
        found.append(tuple(n for n in dict.fromkeys(alive) if n in later))
    return found


def _made(step: Step) -> tuple[str, ...]:
    return () if isinstance(step, Launch) else (step.name,)


def _used(steps: list[Step]) -> set[str]:
    found: set[str] = set()
    for step in steps:
        if isinstance(step, Launch):
            found |= {a.tensor for a in step.args}
        elif isinstance(step, Apply):
            found |= {a for a in step.args if isinstance(a, str)}
        elif not isinstance(step, Allocate):
            found.add(step.source)
    return found
