"""Does the verdict notice? Every synchronization of every kernel is left out in turn, and the kernel judged again.

A removed pair is `found` if the verdict changes, or `redundant` if the order checker proves that everything is still ordered without it
(another flag or barrier on the same pipes does its work) and random legal schedules give the same numbers. Anything else is a hole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from fusion.emit.hostrun import Tensors, run_host
from fusion.emit.program import KernelProgram, Program
from fusion.simulator import Buffer, KernelRun, run_kernel
from fusion.simulator.sync import Sync, synchronizations
from fusion.toolchain import Lowered
from fusion.verify.run import launch_buffers

Outcome = Literal["found", "redundant", "missed"]
SCHEDULES = (1, 2, 3)


@dataclass(frozen=True)
class Mutation:
    """One synchronization left out: what the verdict said."""

    kernel: str
    sync: Sync
    verdict: str
    outcome: Outcome

    def __str__(self) -> str:
        return f"{self.kernel}: without {self.sync}: {self.verdict} ({self.outcome})"


@dataclass(frozen=True)
class _Launch:
    kernel: KernelProgram
    ascendc: str
    buffers: tuple[Buffer, ...]
    clean: KernelRun


def mutations(
    program: Program, lowered: Mapping[str, Lowered], inputs: Mapping[str, torch.Tensor], kinds: tuple[str, ...]
) -> list[Mutation]:
    """All synchronizations of the kinds ("cross", "flag", "barrier") left out in turn, on the buffers of a real run."""
    return [
        _mutate(launch, sync)
        for launch in _launches(program, lowered, inputs)
        for sync in synchronizations(launch.ascendc)
        if sync.kind in kinds
    ]


def _launches(program: Program, lowered: Mapping[str, Lowered], inputs: Mapping[str, torch.Tensor]) -> Iterator[_Launch]:
    """Every kernel with the buffers that it gets in a run of the whole program."""
    found: list[_Launch] = []

    def launch(kernel: KernelProgram, tensors: Tensors) -> None:
        ascendc = lowered[kernel.name].ascendc
        assert ascendc is not None
        buffers = tuple(launch_buffers(kernel, lowered[kernel.name], {n: t.clone() for n, t in tensors.items()}))
        clean = run_kernel(ascendc, kernel.name, buffers)
        found.append(_Launch(kernel, ascendc, buffers, clean))
        for name, data in clean.outputs.items():
            if name in tensors:
                tensors[name].copy_(torch.as_tensor(data).to(tensors[name].dtype))

    run_host(program, {v.name: inputs[v.name].to(getattr(torch, v.dtype)) for v in program.plan.graph.inputs}, launch)
    yield from found


def _mutate(launch: _Launch, sync: Sync) -> Mutation:
    run = run_kernel(launch.ascendc, launch.kernel.name, launch.buffers, mutate=list(sync.lines), timeout=60)
    if run.verdict != launch.clean.verdict or not _same(run, launch.clean):
        word = run.verdict if run.verdict != launch.clean.verdict else "wrong"
        return Mutation(launch.kernel.name, sync, word, "found")
    more = {f.rule for f in run.findings} - {f.rule for f in launch.clean.findings}
    if more:
        return Mutation(launch.kernel.name, sync, ", ".join(sorted(more)), "found")
    for seed in SCHEDULES:
        other = run_kernel(launch.ascendc, launch.kernel.name, launch.buffers, mutate=list(sync.lines), schedule_seed=seed, timeout=60)
        if not _same(other, launch.clean):
            return Mutation(launch.kernel.name, sync, f"clean, but schedule {seed} gives other numbers", "missed")
    return Mutation(launch.kernel.name, sync, "clean", "redundant")


def _same(one: KernelRun, other: KernelRun) -> bool:
    """Whether two runs leave the same bytes in every result (workspaces apart)."""
    results = [n for n in other.outputs if not n.startswith("workspace")]
    return all(np.array_equal(np.asarray(one.outputs[n]), np.asarray(other.outputs[n]), equal_nan=True) for n in results)


def table(found: list[Mutation]) -> str:
    """Per kernel and kind: how many were left out, found, redundant, missed."""
    lines = ["kernel kind removed found redundant missed"]
    for kernel, kind in sorted({(m.kernel, m.sync.kind) for m in found}):
        mine = [m.outcome for m in found if (m.kernel, m.sync.kind) == (kernel, kind)]
        lines.append(f"{kernel} {kind} {len(mine)} {mine.count('found')} {mine.count('redundant')} {mine.count('missed')}")
    return "\n".join(lines)
