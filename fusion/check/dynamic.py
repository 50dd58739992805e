"""Runs a lowered kernel in the simulator, and compares its numbers with what its own statements mean."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from fusion import simulator
from fusion.check import timing
from fusion.check.facts import Facts
from fusion.check.golden import NotInterpreted, interpret
from fusion.check.golden.store import Array
from fusion.check.inputs import Argument, Sizes, arguments, tile_of
from fusion.check.inspection import Instance
from fusion.check.places import Places
from fusion.check.report import Finding, Place, Timing, Verdict, worst
from fusion.errors import FusionError
from fusion.precision import compare
from fusion.simulator import Buffer, KernelRun, run_kernel
from fusion.simulator.build import NOT_COMPILED
from fusion.toolchain import Lowered

RUN_SECONDS = 60.0
MOST_FINDINGS = 6
GENERATED_LINE = re.compile(r"\bline (\d+)")
KINDS: dict[str, Verdict] = {"race": "race", "deadlock": "deadlock", "crash": "error"}
REMEDIES = {
    "race": "order the two: a flag, a barrier, or the compiler's automatic synchronization",
    "deadlock": "let every wait have its set: the same number on every way through the kernel",
    "uninit": "write it before it is read, on every way through the kernel",
    "bounds": "keep the copy inside of the buffer",
    "overlap": "give both buffers room: their sizes must be whole 32-byte blocks and fractals",
    "align": "start at a multiple of 32 bytes",
    "flag": "set and wait in pairs",
    "crash": "see the message",
}

OF_BLOCKS = "give every block a part of its own (an index with cid), add atomically, or use two launches: blocks cannot be ordered"
OF_VECTORS = "give each Vector core rows of its own (an index with vid), or launch with threads=1"


def remedy_for(rule: str, kind: str) -> str:
    """What to do about a finding of the run."""
    if rule.startswith("blocks-"):
        return OF_BLOCKS
    if rule == "cross-core-write-after-write":
        return f"{OF_VECTORS}; between Cube and Vector, a workspace with a flag"
    return REMEDIES.get(kind, "see the message")


@dataclass(frozen=True)
class Outcome:
    """What came of all runs of one kernel. `ran` is False if there was no run to judge by."""

    verdict: Verdict
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()
    ran: bool = True
    time: Timing | None = None
    problem: FusionError | None = None


@dataclass
class _Collected:
    verdicts: list[Verdict] = field(default_factory=lambda: list[Verdict]())
    findings: dict[tuple[str, int], Finding] = field(default_factory=lambda: dict[tuple[str, int], Finding]())
    notes: list[str] = field(default_factory=lambda: list[str]())

    def add(self, finding: Finding) -> None:
        self.findings.setdefault((finding.rule, finding.line), finding)


def run(facts: Facts, instance: Instance, lowered: Lowered, size_sets: Sequence[Sizes], timed: bool = True) -> Outcome:
    """Run a kernel once for each set of sizes; its time is that of the first."""
    found = _Collected()
    try:
        for sizes in size_sets:
            _run_once(facts, instance, lowered, sizes, found)
    except FusionError as problem:
        if problem.remedy == NOT_COMPILED:
            return Outcome("refused", (*found.findings.values(), _not_compiled(facts, lowered, problem.what)), tuple(found.notes))
        return Outcome("error", tuple(found.findings.values()), tuple(found.notes), ran=False, problem=problem)
    verdict = worst(found.verdicts)
    time = _time(facts, instance, lowered, size_sets[0], found) if timed and verdict in ("clean", "wrong") else None
    return Outcome(verdict, tuple(found.findings.values())[:MOST_FINDINGS], tuple(dict.fromkeys(found.notes)), time=time)


def _not_compiled(facts: Facts, lowered: Lowered, message: str) -> Finding:
    """The compiler's C++ is not C++: an error of the compiler's, at the statement that it comes from."""
    line = GENERATED_LINE.search(message)
    place = Places(facts, lowered.ascendc or "").line(int(line[1])) if line else 0
    why = "the compiler takes the kernel and writes code that no C++ compiler takes"
    remedy = "write the statement another way: one operation in a T.Parallel, or T.tile operations on the whole tile"
    return Finding("generated-code", place, f"the generated code does not compile: {message}", remedy, why, "refused")


def _time(facts: Facts, instance: Instance, lowered: Lowered, sizes: Sizes, found: _Collected) -> Timing | None:
    made = arguments(facts, instance, sizes)
    buffers = timing.buffers_for_timing(made, _buffers(lowered, made))
    result = timing.attempt(facts, lowered.ascendc or "", buffers, sizes)
    if isinstance(result, str):
        found.notes.append(result)
        return None
    return result


def _run_once(facts: Facts, instance: Instance, lowered: Lowered, sizes: Sizes, found: _Collected) -> None:
    made = arguments(facts, instance, sizes)
    code = lowered.ascendc or ""
    run = run_kernel(code, facts.program.name, _buffers(lowered, made), dict(sizes), timeout=RUN_SECONDS)
    _refuse_unended(run)
    places = Places(facts, code)
    title = ", ".join(f"{name}={size}" for name, size in sizes.items())
    for finding in run.errors:
        found.add(_translated(finding, places, title))
    wrong = _wrong_numbers(facts, made, run, sizes, found, title)
    passed = None if wrong is None else not wrong
    found.verdicts.append(simulator.verdict(run.findings, passed))
    for finding in wrong or ():
        found.add(finding)


def _refuse_unended(run: KernelRun) -> None:
    for finding in run.errors:
        if finding.kind == "crash" and "did not end within" in finding.message:
            raise FusionError(f"the simulated run {finding.message}", remedy="give it smaller sizes with --args or --shape")


def _buffers(lowered: Lowered, made: Sequence[Argument]) -> list[Buffer]:
    """Buffers in launch order; those that the compiler added come last and are scratch."""
    by_name = {argument.name: argument for argument in made}
    buffers: list[Buffer] = []
    for param in lowered.params:
        if param.role == "scalar":
            continue
        if param.name not in by_name:
            buffers.append(Buffer(param.name, param.dtype, tuple(int(size) for size in param.shape), role="workspace"))
            continue
        argument = by_name[param.name]
        dtype = "uint8" if argument.dtype == "bool" else argument.dtype
        buffers.append(Buffer(param.name, dtype, argument.shape, argument.data, argument.use))
    return buffers


def _translated(finding: simulator.Finding, places: Places, sizes: str) -> Finding:
    """A finding of the simulator with TileLang lines."""
    first = places.line(finding.first.line) if finding.first else 0
    second = places.line(finding.second.line) if finding.second else 0
    labels = [(first, finding.first, "first"), (second, finding.second, "then")]
    marks = tuple(Place(line, f"{word}: {place.unit} {place.text[:90]}".rstrip()) for line, place, word in labels if place and line)
    where = f"{finding.memory} {finding.buffer}".strip()
    said = GENERATED_LINE.sub(lambda found: f"line {places.line(int(found[1]))}", finding.message)
    message = f"{where}: {said} (block {finding.block}{', ' + sizes if sizes else ''}, {finding.count}x)"
    remedy = remedy_for(finding.rule, finding.kind)
    return Finding(
        finding.rule, second or first, message, remedy, "seen in the simulated run", KINDS.get(finding.kind, "error"), places=marks
    )


def _wrong_numbers(
    facts: Facts, made: Sequence[Argument], run: KernelRun, sizes: Sizes, found: _Collected, title: str
) -> list[Finding] | None:
    """Outputs that are not what the statements mean; None if that is not known."""
    if any(finding.kind in ("crash", "deadlock") for finding in run.errors):
        return None
    try:
        golden = interpret(facts, {argument.name: tile_of(argument) for argument in made}, dict(sizes))
    except NotInterpreted as reason:
        found.notes.append(f"numbers not checked: {reason}")
        return None
    wrong: list[Finding] = []
    compared = [a for a in made if a.use in ("out", "inout")]
    for argument in compared:
        actual, expected = run.outputs[argument.name], golden.outputs[argument.name]
        result = compare(actual, expected, argument.dtype)
        if not result.passed:
            wrong.append(_wrong(facts, argument, actual.astype(np.float64), expected, ", ".join(result.failures()), title))
    names = ", ".join(a.name for a in compared)
    found.notes.append(f"numbers of {names} compared with the statements' meaning" + (f" for {title}" if title else ""))
    return wrong


def _wrong(facts: Facts, argument: Argument, actual: Array, expected: Array, result: str, title: str) -> Finding:
    writers = [t for t in facts.touches if argument.name in t.writes]
    with np.errstate(invalid="ignore"):
        error = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    one_sided = np.isnan(actual) != np.isnan(expected)
    at = np.unravel_index(int(np.argmax(np.where(one_sided, np.inf, np.nan_to_num(error)))), error.shape) if error.size else ()
    index = ", ".join(map(str, at))
    example = f"{argument.name}[{index}] is {float(actual[at]):.6g}, should be {float(expected[at]):.6g}" if error.size else ""
    return Finding(
        "wrong-numbers",
        writers[-1].line if writers else 0,
        f"{argument.name} is not what the statements say: {result}{' for ' + title if title else ''}; {example}",
        "the other findings may be the cause; if there is none, the compiler has changed the meaning: simplify the statements before",
        "the simulated kernel and the kernel's own statements, executed one by one, give different numbers",
        "wrong",
    )
