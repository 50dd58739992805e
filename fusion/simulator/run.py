"""Running one generated kernel on the CPU: outputs, findings and counts."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from fusion.errors import FusionError
from fusion.simulator.buffers import Array, Buffer, decode, encode, place
from fusion.simulator.build import build
from fusion.simulator.findings import Finding, Verdict, verdict
from fusion.simulator.source import Kernel, parse
from fusion.simulator.sync import cross_set_places
from fusion.words import count

Drop = int | tuple[int, int]
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class KernelRun:
    """One execution. `seconds` is the simulation itself; `build_seconds` is 0 when the binary was in the cache."""

    kernel: str
    outputs: Mapping[str, Array]
    findings: tuple[Finding, ...]
    seconds: float
    build_seconds: float
    blocks: int
    pipes: Mapping[str, int] = field(default_factory=lambda: dict[str, int]())
    ops: Mapping[str, tuple[int, int]] = field(default_factory=lambda: dict[str, tuple[int, int]]())
    trace: Path | None = None

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.severity == "error")

    @property
    def verdict(self) -> Verdict:
        """The verdict on order alone, without numbers."""
        return verdict(self.findings)


@dataclass(frozen=True)
class Options:
    """How to run: see run_kernel."""

    blocks: int | None = None
    order: bool = True
    schedule_seed: int | None = None
    mutate: Sequence[Drop] = ()
    counting: bool = True
    trace: Path | None = None
    threads: int | None = None
    timeout: float = 120.0


def job_text(
    kernel: Kernel, buffers: Sequence[Buffer], scalars: Sequence[str], offsets: Sequence[int], size: int, folder: Path, options: Options
) -> str:
    lines = [f"kernel {kernel.name}", f"arena {size} {folder / 'arena'}", f"result {folder / 'result'}", f"order {int(options.order)}"]
    lines += [f"vectors {kernel.vectors}", f"threads {options.threads or os.cpu_count() or 1}", f"binary {int(not options.counting)}"]
    lines += [f"trace {options.trace}"] if options.trace else []
    lines += [f"seed {options.schedule_seed}"] if options.schedule_seed is not None else []
    lines += [f"blocks {options.blocks}"] if options.blocks is not None else []
    for drop in options.mutate:
        line, ordinal = drop if isinstance(drop, tuple) else (drop, -1)
        lines.append(f"drop {line} {ordinal}")
    lines += [f"scalar {value}" for value in scalars]
    lines += [f"buffer {b.name} {b.role} {b.dtype} {at} {at + b.nbytes}" for b, at in zip(buffers, offsets, strict=True)]
    lines += [f"local {x.name} {x.memory} {x.lo} {x.hi} {x.line}" for x in kernel.locals]
    return "\n".join(lines) + "\n"


def write_arena(path: Path, buffers: Sequence[Buffer], offsets: Sequence[int], size: int) -> None:
    arena = np.memmap(path, dtype=np.uint8, mode="w+", shape=(size,))
    arena[:] = 0xFF
    for buffer, at in zip(buffers, offsets, strict=True):
        if buffer.data is not None:
            arena[at : at + buffer.nbytes] = encode(buffer).reshape(-1).view(np.uint8)
    arena.flush()


def bind(kernel: Kernel, buffers: Sequence[Buffer], scalars: Mapping[str, int | float]) -> list[str]:
    """The scalar arguments in the order of the signature. Refuses when the counts or names do not fit."""
    wanted = [p.name for p in kernel.parameters if p.is_buffer]
    if len(wanted) != len(buffers):
        raise FusionError(f"{count(len(buffers), 'buffer')} given, the kernel takes {len(wanted)}: {', '.join(wanted)}", where=kernel.name)
    values: list[str] = []
    for parameter in kernel.parameters:
        if parameter.is_buffer:
            continue
        if parameter.name not in scalars:
            raise FusionError(f"no value for the scalar {parameter.name!r}", where=kernel.name, remedy="give it in scalars=")
        values.append(repr(scalars[parameter.name]))
    return values


def crash(kernel: Kernel, message: str) -> Finding:
    return Finding("simulation-stopped", "crash", "error", kernel.name, "GM", "", message)


def execute(binary: Path, job: Path, timeout: float, progress: Progress | None) -> str | None:
    """Runs the binary. Returns None when it ended well, else why not."""
    process = subprocess.Popen([str(binary), str(job)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    killed: list[bool] = []

    def stop() -> None:
        killed.append(True)
        process.kill()

    timer = threading.Timer(timeout, stop)
    timer.start()
    try:
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            words = line.split()
            if progress and words[:1] == ["progress"]:
                progress(int(words[1]), int(words[2]))
        stderr = process.stderr.read()
        code = process.wait()
    finally:
        timer.cancel()
    if killed:
        return f"did not end within {timeout:g} s"
    if code == 0:
        return None
    return f"ended by {signal.Signals(-code).name}" if code < 0 else (stderr.strip().removeprefix("stop: ") or f"exit status {code}")


def with_set_places(finding: Finding, source: list[str]) -> Finding:
    """Completes a deadlock on a cross-core flag: where the code would have set it."""
    match = re.search(r"waits forever for cross-core flag (\d+)", finding.message)
    if not match:
        return finding
    places = [
        f"line {line}" + (f" under `{condition}`" if condition else "")
        for line, condition in cross_set_places("\n".join(source), int(match[1]))
    ]
    text = "; the code sets it at " + ", ".join(places) if places else "; no statement sets it"
    return replace(finding, message=finding.message + text)


def read_findings(kernel: Kernel, lines: list[str], source: list[str]) -> tuple[Finding, ...]:
    found = [Finding.from_json({**json.loads(line), "kernel": kernel.name}) for line in lines]
    rank = {"error": 0, "warning": 1, "info": 2}
    found = [with_set_places(f, source) for f in found]
    return tuple(
        f.with_text(source) for f in sorted(found, key=lambda f: (rank[f.severity], f.kind, f.second.line if f.second else 0, f.rule))
    )


def run_kernel(
    ascendc: str,
    name: str,
    buffers: Sequence[Buffer],
    scalars: Mapping[str, int | float] | None = None,
    *,
    blocks: int | None = None,
    order: bool = True,
    schedule_seed: int | None = None,
    mutate: Sequence[Drop] = (),
    counting: bool = True,
    trace: Path | None = None,
    threads: int | None = None,
    timeout: float = 120.0,
    templates: Path | None = None,
    progress: Progress | None = None,
) -> KernelRun:
    """Compiles generated Ascend C against the stand-in, runs all blocks, and tells what came out and what was wrong.

    buffers        one per GM argument, in the order of the generated launcher
    blocks         overrides the launcher's block count (for hand-written kernels without one: default 1)
    order          check happens-before, initialisation, overlap; off is about twice as fast
    schedule_seed  instead of checking order, execute one random legal schedule of all pipes
    mutate         synchronizations to leave out: generated line numbers, or (line, ordinal on that line)
    counting       False also reports, as errors, code that is right only if cross-core flags count
    trace          where to write the binary instruction trace (see fusion.simulator.trace)
    """
    kernel = parse(ascendc, name)
    values = bind(kernel, buffers, scalars or {})
    started = time.perf_counter()
    binary = build(ascendc, kernel, templates)
    build_seconds = time.perf_counter() - started
    options = Options(blocks, order, schedule_seed, mutate, counting, trace, threads, timeout)
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() and os.access(shared, os.W_OK) else None) as temporary:
        return _run(binary, kernel, ascendc.splitlines(), buffers, values, Path(temporary), options, build_seconds, progress)


def _run(
    binary: Path,
    kernel: Kernel,
    source: list[str],
    buffers: Sequence[Buffer],
    scalars: Sequence[str],
    folder: Path,
    options: Options,
    build_seconds: float,
    progress: Progress | None,
) -> KernelRun:
    offsets, size = place(buffers)
    write_arena(folder / "arena", buffers, offsets, size)
    (folder / "job").write_text(job_text(kernel, buffers, scalars, offsets, size, folder, options))
    failure = execute(binary, folder / "job", options.timeout, progress)
    arena = np.fromfile(folder / "arena", dtype=np.uint8)
    outputs = {b.name: decode(arena[at : at + b.nbytes], b) for b, at in zip(buffers, offsets, strict=True) if b.role != "in"}
    if failure is not None:
        return KernelRun(kernel.name, outputs, (crash(kernel, failure),), 0.0, build_seconds, 0)
    head, *rest = (folder / "result").read_text().splitlines()
    stats = json.loads(head)
    ops = {op: (int(n), int(elements)) for op, (n, elements) in stats["ops"].items()}
    return KernelRun(
        kernel.name,
        outputs,
        read_findings(kernel, rest, source),
        float(stats["seconds"]),
        build_seconds,
        int(stats["blocks"]),
        stats["pipes"],
        ops,
        options.trace,
    )
