"""Checks files: what kernels they make, the static rules, the real compiler, the run; one report a kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from fusion.check import dynamic, reference, shrink
from fusion.check.facts import Facts, called_function, collect
from fusion.check.inputs import known_sizes, size_sets
from fusion.check.inspection import Inspection, Instance, Request, inspect_files
from fusion.check.reference import has_comparison
from fusion.check.report import FileReport, Finding, Report, Verdict, unjudged, worst
from fusion.check.static import static_findings
from fusion.check.unbuilt import (
    arguments_of,
    check_names,
    hint,
    odd_arguments,
    open_names,
    skipped,
    unbuilt,
    without_kernel,
    wrong_argument,
)
from fusion.errors import FusionError
from fusion.toolchain import Lowered, LowerError, daemon, lower

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
    """One kernel on its way; `odd` are arguments of the command line that have another type than their defaults."""

    source: Source
    instance: Instance
    facts: Facts
    static: tuple[Finding, ...]
    odd: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

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
    for index, found in enumerate(_inspected(sources, options, say)):
        reports[index] += without_kernel(sources[index].path, found, options.kernel)
        reports[index] += unbuilt(sources[index].path, found, options.args)
        cases.extend((index, case) for case in _cases(sources[index], found, options))
    cases = _small(cases, options) if options.run else cases
    open_names((known_sizes(case.facts.program) for _, case in cases), options.shape if cases else ())
    for index, report in _judge(cases, options, say):
        reports[index].append(report)
    return [FileReport(source.path, source.text, tuple(reports[index])) for index, source in enumerate(sources)]


def _silent(_what: str) -> None:
    return None


# ---- what a file makes


def _inspected(sources: Sequence[Source], options: Options, say: Progress) -> list[Inspection]:
    """What every file makes. Raises FusionError for a kernel or a parameter that none of them has."""
    found: dict[int, Inspection] = {}

    def done(index: int, inspection: Inspection) -> None:
        say(f"read {sources[index].path.name}")
        found[index] = inspection

    inspect_files([Request(s.path, s.text, options.kernel, options.args) for s in sources], done)
    inspections = [found[index] for index in range(len(sources))]
    check_names(inspections, options.kernel, options.args)
    return inspections


def _cases(source: Source, found: Inspection, options: Options) -> Iterator[_Case]:
    for instance in found.instances:
        if instance.program is not None and instance.problem is None:
            left_out = skipped(found, instance.factory)
            yield _case(source, instance, odd_arguments(found, instance, options.args), (left_out,) if left_out else ())


def _case(source: Source, instance: Instance, odd: tuple[str, ...], notes: tuple[str, ...]) -> _Case:
    assert instance.program is not None
    facts = collect(instance.program)
    findings = tuple(_placed(finding, source.text) for finding in static_findings(facts, instance.pass_configs))
    return _Case(source, instance, facts, findings, odd, notes)


def _small(cases: list[tuple[int, _Case]], options: Options) -> list[tuple[int, _Case]]:
    """The cases, with smaller arguments where their own would take long; those that the file compares itself keep theirs."""
    own = [(at, shrink.smaller(c.facts, c.instance, options.args)) for at, (_, c) in enumerate(cases) if not has_comparison(c.source.text)]
    chosen = [(at, sizes) for at, sizes in own if sizes]
    requests = [(Request(cases[at][1].source.path, cases[at][1].source.text), cases[at][1].instance, sizes) for at, sizes in chosen]
    result = list(cases)
    for (at, sizes), instance in zip(chosen, shrink.shrunk(requests), strict=True):
        index, case = cases[at]
        if instance is not None:
            said = shrink.note(case.instance, sizes)
            result[at] = index, _case(case.source, replace(instance, line=case.instance.line), case.odd, (*case.notes, said))
    return result


def _placed(finding: Finding, text: str) -> Finding:
    """Findings about the configuration get the line where it is written."""
    if finding.line or finding.fix != "combine":
        return finding
    lines = text.splitlines()
    found = [n for pattern in (COMBINE, CROSS_SYNC) for n, line in enumerate(lines, 1) if pattern.search(line)]
    return replace(finding, line=found[0] if found else 1)


# ---- lowering and running


def _judge(cases: Sequence[tuple[int, _Case]], options: Options, say: Progress) -> Iterator[tuple[int, Report]]:
    if not cases:
        return
    results = lower([case.instance.kernel_source() for _, case in cases], progress=lambda text, _done, _total: say(text))
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
    if not has_comparison(source.text) or any(reports[i].verdict not in ("clean", "wrong", "race") for i in mine):
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


def _report(case: _Case, lowered: Lowered, options: Options, say: Progress) -> Report:
    base = Report(
        case.source.path,
        case.instance.factory,
        "clean",
        case.static,
        args=arguments_of(case.instance),
        notes=case.notes,
    )
    if lowered.error is not None and lowered.error.kind in ("unavailable", "timeout"):
        error = lowered.error
        return unjudged(base.file, base.kernel, f"compiler-{error.kind}", case.instance.line, error.message, error.details)
    if lowered.error is not None and case.odd:
        return wrong_argument(base.file, base.kernel, case.instance.line, case.odd, lowered.error.message)
    if case.refused:
        return _refused(base, lowered)
    if lowered.error is not None:
        return replace(base, verdict="refused", findings=(*case.static, _compiler_finding(case, lowered.error)))
    lost = _without_code(case, lowered)
    if lost:
        return replace(base, verdict="refused", findings=(*case.static, *lost))
    if not options.run:
        return _foretold(base)
    say(f"running {base.kernel}")
    return _dynamic(base, case, lowered, options)


def _refused(base: Report, lowered: Lowered) -> Report:
    notes = (f"the compiler: {lowered.error.message}",) if lowered.error else ("the compiler accepts it without a word",)
    return replace(base, verdict="refused", notes=(*base.notes, *notes))


def _without_code(case: _Case, lowered: Lowered) -> tuple[Finding, ...]:
    """Calls of functions of the template library that the compiler drops without a word."""
    found: list[Finding] = []
    for touch in case.facts.touches:
        name = called_function(touch)
        if name and not re.search(rf"\b{re.escape(name)}\b", lowered.ascendc or ""):
            why = "the compiler accepts the statement and writes nothing for it: its result is never made"
            remedy = f"use another operation: T.tile.{name}_experiment if there is one"
            found.append(Finding("no-code", touch.line, f"{name} is not in the generated code", remedy, why, "refused"))
    return tuple(found)


def _compiler_finding(case: _Case, error: LowerError) -> Finding:
    named = [b for b in case.facts.locals.values() if re.search(rf"\b{re.escape(b.name)}\b", error.message)]
    line = named[0].line if named else case.instance.line
    step = f" in {error.pass_name}" if error.pass_name and error.pass_name not in error.message else ""
    known = hint(f"{error.message} {error.pass_name}", "the message names the limit, or simplify the kernel until it compiles")
    remedy = "the findings above may be the cause" if case.static else known
    return Finding(f"compiler-{error.kind}", line, error.message + step, remedy, "the compiler does not get through the kernel", "refused")


def _foretold(base: Report) -> Report:
    found: list[Verdict] = [finding.verdict for finding in base.errors]
    return replace(base, verdict=worst(found), notes=(*base.notes, "not run: the verdict is the static rules' alone"))


def _dynamic(base: Report, case: _Case, lowered: Lowered, options: Options) -> Report:
    outcome = dynamic.run(case.facts, case.instance, lowered, size_sets(case.facts.program, options.shape), options.time)
    if outcome.problem is not None:
        problem = outcome.problem
        finding = Finding("not-run", case.instance.line, problem.what, problem.remedy or "the static findings stand", verdict="error")
        return replace(
            base, verdict="error", findings=(*base.findings, *outcome.findings, finding), notes=(*base.notes, *outcome.notes), judged=False
        )
    seen = {outcome.verdict, *(finding.verdict for finding in outcome.findings)}
    static = tuple(f if f.verdict in seen else _not_seen(f) for f in case.static)
    return replace(
        base, verdict=outcome.verdict, findings=(*static, *outcome.findings), notes=(*base.notes, *outcome.notes), time=outcome.time
    )


def _not_seen(finding: Finding) -> Finding:
    """A foretold mistake that the run did not show."""
    return replace(finding, severity="warning", why=f"{finding.why}; not seen in the simulated run")
