"""Runs the generated Ascend C of a whole plan on the CPU and judges it: numbers, order, memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from fusion.emit.emit import emit
from fusion.emit.program import KernelProgram, Program
from fusion.errors import FusionError
from fusion.graph import StageGraph
from fusion.plan.types import Plan
from fusion.precision import Comparison, compare
from fusion.simulator import Buffer, Finding, run_kernel, verdict
from fusion.simulator.findings import Verdict
from fusion.toolchain import KernelSource, Lowered, lower
from fusion.verify.places import Origin, origin

if TYPE_CHECKING:
    import torch

    from fusion.emit.hostrun import Tensors

Progress = Callable[[str, int, int], None]
ROLES = {"input": "in", "output": "out", "atomic": "inout", "workspace": "workspace"}


@dataclass(frozen=True)
class Located:
    """A finding with the kernel of the plan, and where its two statements come from in the TileLang source."""

    kernel: str
    finding: Finding
    first: Origin | None
    second: Origin | None
    handoff: str = ""

    def to_json(self) -> dict[str, object]:
        places = {"first_source": asdict(self.first) if self.first else None, "second_source": asdict(self.second) if self.second else None}
        return {**self.finding.to_json(), "kernel": self.kernel, "handoff": self.handoff, **places}

    def __str__(self) -> str:
        lines = [f"[{self.kernel}] {self.finding}"]
        for label, place in (("first", self.first), ("second", self.second)):
            lines += [f"  {label} comes from line {place.line}, stage {place.stage or '-'}: {place.text}"] if place else []
        lines += [f"  handoff of the plan: {self.handoff}"] if self.handoff else []
        return "\n".join(lines)


@dataclass(frozen=True)
class PlanVerdict:
    """What a run of a plan showed. `outputs` compares every result with the golden by the precision standard."""

    verdict: Verdict
    outputs: Mapping[str, Comparison]
    findings: tuple[Located, ...]
    seconds: float

    @property
    def errors(self) -> tuple[Located, ...]:
        return tuple(f for f in self.findings if f.finding.severity == "error")

    def to_json(self) -> dict[str, object]:
        return {
            "verdict": self.verdict,
            "outputs": {n: c.to_json() for n, c in self.outputs.items()},
            "findings": [f.to_json() for f in self.findings],
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True)
class RunOptions:
    """How the simulator runs: a random legal schedule instead of order checks, flags as binary, synchronizations to leave out by kernel."""

    schedule_seed: int | None = None
    counting: bool = True
    order: bool = True
    mutate: tuple[tuple[str, int], ...] = ()  # (kernel, generated line)


def lower_program(program: Program, targets: Sequence[str] = ("ascendc",)) -> dict[str, Lowered]:
    """The compiler's output by kernel. Raises FusionError with the kernel that the compiler refuses."""
    sources = [KernelSource(k.name, k.source) for k in program.kernels]
    found = {r.name: r for r in lower(sources, tuple(t for t in ("ascendc", "pto") if t in targets))}
    for name, result in found.items():
        if result.error:
            raise FusionError(
                f"the compiler refuses the kernel: {result.error.message}", where=name, remedy=str(result.error.details)[:400]
            )
    return found


def verify_plan(
    plan: Plan, inputs: Mapping[str, torch.Tensor], options: RunOptions | None = None, progress: Progress | None = None
) -> PlanVerdict:
    """Emits, lowers, runs and judges a plan on the given inputs (rounded to the dtypes of the operator)."""
    program = emit(plan)
    return verify_program(program, lower_program(program), inputs, options or RunOptions(), progress)


def verify_program(
    program: Program,
    lowered: Mapping[str, Lowered],
    inputs: Mapping[str, torch.Tensor],
    options: RunOptions,
    progress: Progress | None = None,
) -> PlanVerdict:
    """As verify_plan, for a program that is lowered already."""
    import torch

    from fusion.emit.hostrun import run_host
    from fusion.graph.evaluate import evaluate

    graph = program.plan.graph
    found: list[Located] = []
    seconds = [0.0]

    def launch(kernel: KernelProgram, tensors: Tensors) -> None:
        if progress:
            progress(kernel.name, program.kernels.index(kernel), len(program.kernels))
        located, took = _launch(program, kernel, lowered[kernel.name], tensors, options)
        found.extend(located)
        seconds[0] += took

    rounded = {v.name: inputs[v.name].to(getattr(torch, v.dtype)) for v in graph.inputs}
    outputs = run_host(program, rounded, launch)
    exact = {n: t.double() if t.is_floating_point() else t for n, t in rounded.items()}
    golden, declared = evaluate(graph, exact, by_phase=True), declared_integers(graph, rounded)
    compared = {
        v.name: compare(outputs[v.name], unless_right(golden[v.name], outputs[v.name], declared.get(v.name)), v.dtype)
        for v in graph.outputs
    }
    word = verdict([f.finding for f in found], all(c.passed for c in compared.values()))
    return PlanVerdict(word, compared, tuple(found), seconds[0])


def declared_integers(graph: StageGraph, inputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Integer outputs as the operator's own dtypes give them: near a half, exact arithmetic may round to the other side."""
    from fusion.graph.evaluate import evaluate

    if all(v.dtype.startswith(("float", "bfloat")) for v in graph.outputs):
        return {}
    found = evaluate(graph, inputs, "declared", by_phase=True)
    return {n: t for n, t in found.items() if not t.is_floating_point()}


def unless_right(golden: torch.Tensor, output: torch.Tensor, declared: torch.Tensor | None) -> torch.Tensor:
    """The golden, but the output where it is as near as its dtype allows: the rounded golden, or the integer of the declared arithmetic."""
    import torch

    right = golden.to(output.dtype) == output
    if declared is not None:
        right |= declared == output
    return torch.where(right, output.to(golden.dtype), golden)


def _launch(
    program: Program, kernel: KernelProgram, lowered: Lowered, tensors: Tensors, options: RunOptions
) -> tuple[list[Located], float]:
    """One kernel on the simulator; its results are written into the tensors."""
    import torch

    assert lowered.ascendc is not None
    run = run_kernel(
        lowered.ascendc,
        kernel.name,
        launch_buffers(kernel, lowered, tensors),
        order=options.order and options.schedule_seed is None,
        schedule_seed=options.schedule_seed,
        counting=options.counting,
        mutate=[line for name, line in options.mutate if name == kernel.name],
    )
    for name, data in run.outputs.items():
        if name in tensors:
            tensors[name].copy_(torch.as_tensor(data).to(tensors[name].dtype))
    return [locate(program, kernel, f) for f in run.findings if f.rule != "output-not-written"], run.seconds


def launch_buffers(kernel: KernelProgram, lowered: Lowered, tensors: Tensors) -> list[Buffer]:
    """The arguments of a launch in their order: the kernel's own parameters, then the relays that the compiler added."""
    buffers = [_buffer(p.name, p.dtype, p.shape, p.role, tensors) for p in kernel.params]
    own = {p.name for p in kernel.params}
    for p in lowered.params:
        if p.role == "relay" and p.name not in own:
            buffers.append(Buffer(p.name, p.dtype, tuple(int(str(n)) for n in p.shape), role="workspace"))
    return buffers


def _buffer(name: str, dtype: str, shape: tuple[int, ...], role: str, tensors: Tensors) -> Buffer:
    known = ROLES[role]
    data = tensors[name] if known in ("in", "inout") else None
    return Buffer(name, dtype, shape, data, role=known)  # pyright: ignore[reportArgumentType]


def locate(program: Program, kernel: KernelProgram, finding: Finding) -> Located:
    """The finding with its places in the TileLang source and the handoff of the plan that it concerns."""
    planned = next(k for k in program.plan.kernels if k.name == kernel.name)
    handoff = next((f"{h.name} ({h.value}, {h.direction})" for h in planned.handoffs if h.name == finding.buffer), "")
    first = origin(kernel, finding.first.text) if finding.first else None
    second = origin(kernel, finding.second.text) if finding.second else None
    return Located(kernel.name, replace(finding, kernel=kernel.name), first, second, handoff)
