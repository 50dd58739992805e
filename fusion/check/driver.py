"""Checks files: what kernels they make, the static rules, the real compiler, the run; one report a kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from fusion.check import dynamic, reference
from fusion.check.facts import Facts, collect
from fusion.check.inputs import size_sets
from fusion.check.inspection import Inspection, Instance, Request, Stopped, inspect_files
from fusion.check.report import FileReport, Finding, Report, Verdict, unjudged, worst
from fusion.check.static import static_findings
from fusion.errors import FusionError
from fusion.toolchain import KernelSource, Lowered, LowerError, daemon, lower

DEVELOPER_MODE = {
    "tl.ascend_auto_cv_combine": True,
    "tl.ascend_auto_cross_core_sync": True,
    "tl.ascend_auto_sync": True,
    "tl.ascend_memory_planning": True,
}
"""What a prim_func is lowered with that no `@tilelang.jit` has configured."""
COMBINE = re.compile(r"TL_ASCEND_AUTO_CV_COMBINE|tl\.ascend_auto_cv_combine")
CROSS_SYNC = re.compile(r"TL_ASCEND_AUTO_CV_SYNC|tl\.ascend_auto_cross_core_sync")

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Options:
    """`kernel` picks one by name; `args` go to the factories, `shape` to open sizes; `run` False stops after the compiler.

    `time` False leaves out the timeline.
    """

    kernel: str = ""
    args: Mapping[str, object] = field(default_factory=lambda: dict[str, object]())
    shape: Mapping[str, int] = field(default_factory=lambda: dict[str, int]())
    run: bool = True
    time: bool = True


@dataclass(frozen=True)
class Source:
    """A file, with the text that is checked: of the disk, or with a fix."""

    path: Path
    text: str


@dataclass(frozen=True)
class _Case:
    """One kernel on its way."""

    source: Source
    instance: Instance
    facts: Facts
    static: tuple[Finding, ...]

    @property
    def refused(self) -> bool:
        return any(finding.verdict == "refused" for finding in self.static)


def read_source(path: Path) -> Source:
    """The file's text; raises FusionError if it cannot be read."""
    try:
        return Source(path, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise FusionError(f"cannot be read: {error}", where=str(path)) from error


def check_sources(sources: Sequence[Source], options: Options, progress: Progress | None = None) -> list[FileReport]:
    """A report for every file, in the order given. Raises FusionError if there is no compiler."""
    say = progress or _silent
    reports: dict[int, list[Report]] = {index: [] for index in range(len(sources))}
    cases: list[tuple[int, _Case]] = []

    def inspected(index: int, found: Inspection) -> None:
        say(f"read {sources[index].path.name}")
        reports[index] += _without_kernel(sources[index], found, options)
        cases.extend((index, case) for case in _cases(sources[index], found))
        reports[index] += _unbuilt(sources[index], found)

    inspect_files([Request(s.path, s.text, options.kernel, options.args) for s in sources], inspected)
    for index, report in _judge(cases, options, say):
        reports[index].append(report)
    return [FileReport(source.path, source.text, tuple(reports[index])) for index, source in enumerate(sources)]


def _silent(_what: str) -> None:
    return None


# ---- what a file makes


def _without_kernel(source: Source, found: Inspection, options: Options) -> list[Report]:
    """Why there is nothing to check in a file."""
    if found.instances:
        return []
    if found.stopped:
        return [_stopped(source.path, found.stopped)]
    what = f"no kernel called {options.kernel!r}" if options.kernel else "no kernel"
    names = ", ".join(f.name for f in found.factories)
    remedy = f"it has {names}" if names else "a kernel is a function with @tilelang.jit or @T.prim_func"
    return [unjudged(source.path, options.kernel, "no-kernel", 1, f"{what} in this file", remedy)]


STOPPED = {
    "syntax": ("syntax-error", "not Python: ", "correct the line"),
    "time": (
        "import-timeout",
        "executing the file does not end: ",
        "put what is not a kernel under `if __name__ == '__main__'`, or end it",
    ),
    "memory": ("import-memory", "executing the file: ", "do not allocate at import; only the kernels are needed"),
    "exception": (
        "import-error",
        "executing the file fails: ",
        "correct it, or put what is not a kernel under `if __name__ == '__main__'`",
    ),
}


def _stopped(path: Path, stopped: Stopped) -> Report:
    rule, head, remedy = STOPPED.get(stopped.kind, STOPPED["exception"])
    return unjudged(path, "", rule, stopped.line, head + stopped.message, remedy)


def _unbuilt(source: Source, found: Inspection) -> Iterator[Report]:
    for instance in found.instances:
        if instance.problem is None and instance.program is not None:
            continue
        if instance.problem is None:
            message = f"its TIR has a node that is not read here: {instance.unread}"
            yield unjudged(source.path, instance.factory, "not-read", instance.line, message, "report it")
        elif instance.problem.kind == "arguments":
            problem = instance.problem
            remedy = "give it with --args NAME=VALUE"
            yield unjudged(
                source.path, instance.factory, "missing-arguments", problem.line, f"{instance.factory} {problem.message}", remedy
            )
        else:
            finding = Finding("frontend", instance.problem.line, instance.problem.message, "correct the statement", verdict="refused")
            yield Report(source.path, instance.factory, "refused", (finding,), args=_args(instance))


def _cases(source: Source, found: Inspection) -> Iterator[_Case]:
    for instance in found.instances:
        if instance.program is not None and instance.problem is None:
            facts = collect(instance.program)
            configs = DEVELOPER_MODE if instance.configs is None else instance.configs
            findings = tuple(_placed(finding, source.text) for finding in static_findings(facts, configs))
            yield _Case(source, instance, facts, findings)


def _placed(finding: Finding, text: str) -> Finding:
    """Findings about the configuration get the line where it is written."""
    if finding.line or finding.fix != "combine":
        return finding
    lines = text.splitlines()
    found = [n for pattern in (COMBINE, CROSS_SYNC) for n, line in enumerate(lines, 1) if pattern.search(line)]
    return replace(finding, line=found[0] if found else 1)


def _args(instance: Instance) -> str:
    return ", ".join(f"{name}={value}" for name, value in instance.args.items())


# ---- lowering and running


def _judge(cases: Sequence[tuple[int, _Case]], options: Options, say: Progress) -> Iterator[tuple[int, Report]]:
    if not cases:
        return
    results = lower([_kernel_source(case) for _, case in cases], progress=lambda text, _done, _total: say(text))
    with ThreadPoolExecutor(max_workers=daemon.slots()) as pool:
        futures = [pool.submit(_report, case, result, options, say) for (_, case), result in zip(cases, results, strict=True)]
        reports = [future.result() for future in futures]
        files = {index: [i for i, (at, _) in enumerate(cases) if at == index] for index, _ in cases}
        if options.run:
            compared = [(mine, pool.submit(_own_comparison, mine, cases, results, reports, say)) for mine in files.values()]
            for mine, future in compared:
                _add(reports, mine, future.result())
    yield from ((index, report) for (index, _), report in zip(cases, reports, strict=True))


def _own_comparison(
    mine: Sequence[int], cases: Sequence[tuple[int, _Case]], results: Sequence[Lowered], reports: Sequence[Report], say: Progress
) -> reference.Compared | None:
    """What the comparison of one file says of its kernels; only for kernels that run at all."""
    source = cases[mine[0]][1].source
    if not reference.has_comparison(source.text) or any(reports[i].verdict not in ("clean", "wrong", "race") for i in mine):
        return None
    say(f"comparing {source.path.name}")
    return reference.compare(
        source.path, source.text, [reference.Subject(cases[i][1].instance, cases[i][1].facts, results[i]) for i in mine]
    )


def _add(reports: list[Report], mine: Sequence[int], compared: reference.Compared | None) -> None:
    """A failed comparison makes the kernel that was called last wrong, if it is not worse."""
    for position in sorted(compared.called) if compared else ():
        report = reports[mine[position]]
        if compared and compared.finding:
            verdict = worst((report.verdict, compared.finding.verdict))
            reports[mine[position]] = replace(report, verdict=verdict, findings=(*report.findings, compared.finding))
        elif compared:
            reports[mine[position]] = replace(report, notes=(*report.notes, compared.note))


def _kernel_source(case: _Case) -> KernelSource:
    """The prim_func as the file made it: saved, so that the file is not executed again."""
    text = f"import tvm\n\nkernel = tvm.ir.load_json({case.instance.tir!r})\n"
    configs = DEVELOPER_MODE if case.instance.configs is None else case.instance.configs
    return KernelSource(case.instance.factory, text, "kernel", pass_configs=configs)


def _report(case: _Case, lowered: Lowered, options: Options, say: Progress) -> Report:
    base = Report(case.source.path, case.instance.factory, "clean", case.static, args=_args(case.instance))
    if lowered.error is not None and lowered.error.kind in ("unavailable", "timeout"):
        error = lowered.error
        return unjudged(base.file, base.kernel, f"compiler-{error.kind}", case.instance.line, error.message, error.details)
    if case.refused:
        return _refused(base, lowered)
    if lowered.error is not None:
        return replace(base, verdict="refused", findings=(*case.static, _compiler_finding(case, lowered.error)))
    if not options.run:
        return _foretold(base)
    say(f"running {base.kernel}")
    return _dynamic(base, case, lowered, options)


def _refused(base: Report, lowered: Lowered) -> Report:
    notes = (f"the compiler: {lowered.error.message}",) if lowered.error else ("the compiler accepts it without a word",)
    return replace(base, verdict="refused", notes=notes)


def _compiler_finding(case: _Case, error: LowerError) -> Finding:
    named = [b for b in case.facts.locals.values() if re.search(rf"\b{re.escape(b.name)}\b", error.message)]
    line = named[0].line if named else case.instance.line
    step = f" in {error.pass_name}" if error.pass_name and error.pass_name not in error.message else ""
    remedy = "the findings above may be the cause" if case.static else "no rule explains it: simplify the kernel until it compiles"
    return Finding(f"compiler-{error.kind}", line, error.message + step, remedy, "the compiler does not get through the kernel", "refused")


def _foretold(base: Report) -> Report:
    found: list[Verdict] = [finding.verdict for finding in base.errors]
    return replace(base, verdict=worst(found), notes=("not run: the verdict is the static rules' alone",))


def _dynamic(base: Report, case: _Case, lowered: Lowered, options: Options) -> Report:
    try:
        sets = size_sets(case.facts.program, options.shape)
    except FusionError as problem:
        return unjudged(base.file, base.kernel, "shape", case.instance.line, problem.what, problem.remedy)
    outcome = dynamic.run(case.facts, case.instance, lowered, sets, options.time)
    if outcome.problem is not None:
        finding = Finding(
            "not-run", case.instance.line, str(outcome.problem).replace("\n", "; "), "the static findings stand", verdict="error"
        )
        return replace(base, verdict="error", findings=(*base.findings, *outcome.findings, finding), notes=outcome.notes, judged=False)
    seen = {outcome.verdict, *(finding.verdict for finding in outcome.findings)}
    static = tuple(f if f.verdict in seen else _not_seen(f) for f in case.static)
    return replace(base, verdict=outcome.verdict, findings=(*static, *outcome.findings), notes=outcome.notes, time=outcome.time)


def _not_seen(finding: Finding) -> Finding:
    """A foretold mistake that the run did not show."""
    return replace(finding, severity="warning", why=f"{finding.why}; not seen in the simulated run")
