"""Reports for people: the source around each finding with the place marked, and a summary of many files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusion.check.report import FileReport, Finding, Place, Report, Timing
from fusion.words import count


def lines(file: FileReport) -> Iterator[str]:
    """Everything about one file."""
    source = file.text.splitlines()
    for report in file.kernels:
        yield _head(report)
        for finding in report.findings:
            yield from _finding(report, finding, source)
        yield from (f"  {note}" for note in report.notes)
        if report.time:
            yield from _timing(report.time, source)
        yield ""


def _head(report: Report) -> str:
    kernel = f"{report.kernel}({report.args})" if report.args else report.kernel
    return f"{report.file}: {kernel + ': ' if kernel else ''}{report.verdict}"


def _timing(time: Timing, source: Sequence[str]) -> Iterator[str]:
    """The timeline table, and the hints under it."""
    busy = ", ".join(f"{name} {share:.0%}" for name, share in time.busy)
    yield f"  time: {time.us:.1f} us in {count(time.blocks, 'block')}, {time.bottleneck}; busy: {busy}"
    for line, us in time.lines:
        yield f"  {us:8.2f} us  line {line}: {source[line - 1].strip()[:90] if 0 < line <= len(source) else ''}"
    for hint in time.hints:
        yield f"  hint[{hint.rule}]: {f'line {hint.line}: ' if hint.line else ''}{hint.message} (about {hint.gain_us:.1f} us)"


def _finding(report: Report, finding: Finding, source: Sequence[str]) -> Iterator[str]:
    yield f"{finding.severity}[{finding.rule}]: {finding.message}"
    if finding.line:
        yield f"  --> {report.file}:{finding.line}"
        yield from _excerpt(finding, source)
    if finding.why:
        yield f"   = why: {finding.why}"
    if finding.remedy:
        yield f"   = fix: {finding.remedy}"


def _excerpt(finding: Finding, source: Sequence[str]) -> Iterator[str]:
    """The lines of a finding in order, the main one marked."""
    labels: dict[int, list[str]] = {}
    for place in (*finding.places, Place(finding.line, "")):
        if 0 < place.line <= len(source):
            labels.setdefault(place.line, []).append(place.label)
    width = len(str(max(labels, default=0)))
    shown = sorted(labels)
    indent = min((len(source[n - 1]) - len(source[n - 1].lstrip()) for n in shown), default=0)
    for before, number in zip([None, *shown], shown, strict=False):
        if before is not None and number > before + 1:
            yield f"  {' ' * width} ..."
        yield from _line(number, source[number - 1][indent:], labels[number], number == finding.line, width)


def _line(number: int, text: str, labels: Sequence[str], main: bool, width: int) -> Iterator[str]:
    yield f"  {number:>{width}} | {text}"
    said = "; ".join(dict.fromkeys(label for label in labels if label))
    body = text.lstrip()
    if main or said:
        yield f"  {' ' * width} | {' ' * (len(text) - len(body))}{('^' if main else '-') * max(1, len(body))} {said}".rstrip()


def summary(files: Sequence[FileReport]) -> Iterator[str]:
    """One line a kernel, and the counts."""
    rows = [(str(file.path), report) for file in files for report in file.kernels]
    width = max((len(path) + len(report.kernel) for path, report in rows), default=0) + 2
    for path, report in rows:
        first = next((f"{f.rule} (line {f.line})" for f in report.errors), "")
        yield f"{path + '  ' + report.kernel:<{width}}  {report.verdict:<9} {first}".rstrip()
    empty = [str(file.path) for file in files if not file.kernels]
    yield from (f"{path:<{width}}  no kernel" for path in empty)
    counts: dict[str, int] = {}
    for _, report in rows:
        counts[report.verdict] = counts.get(report.verdict, 0) + 1
    yield f"{count(len(files), 'file')}, {count(len(rows), 'kernel')}: " + (
        ", ".join(f"{number} {verdict}" for verdict, number in sorted(counts.items())) or "none"
    )
