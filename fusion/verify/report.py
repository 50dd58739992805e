"""A verification's results as a table, as the full text of its findings, and as one JSON object."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from fusion.precision import shown_below
from fusion.verify.cases import BLOCKING
from fusion.verify.run import Located
from fusion.verify.session import CaseResult
from fusion.words import count


def overall(results: Sequence[CaseResult]) -> str:
    """The worst verdict of the cases that block: error, deadlock, race, wrong, or clean."""
    words = [r.verdict.verdict if r.verdict else "error" for r in results if r.blocks]
    return next((w for w in ("error", "deadlock", "race", "wrong") if w in words), "clean")


def as_object(operator: str, target: int, results: Sequence[CaseResult]) -> dict[str, object]:
    """`verdict`, `outputs` (the worst of each over the cases that block) and `findings` (of all cases), then every case."""
    outputs: dict[str, dict[str, object]] = {}
    judged = [r for r in results if r.verdict and r.case.level in BLOCKING] or [r for r in results if r.verdict]
    for name, comparison in ((n, c) for r in judged if r.verdict for n, c in r.verdict.outputs.items()):
        if name not in outputs or comparison.ratio < float(str(outputs[name]["ratio"])):
            outputs[name] = comparison.to_json()
    return {
        "operator": operator,
        "target": target,
        "verdict": overall(results),
        "outputs": outputs,
        "findings": [f.to_json() for r in results if r.verdict for f in r.verdict.errors],
        "cases": [_case(r) for r in results],
    }


def _case(r: CaseResult) -> dict[str, object]:
    judged = r.verdict.to_json() if r.verdict else {"verdict": "refused" if r.passed else "error", "problem": r.problem}
    return {"name": r.case.name, "level": r.case.level, "parameters": dict(r.case.parameters), "passed": r.passed, **judged}


def print_results(operator: str, target: int, results: Sequence[CaseResult], full: bool) -> None:
    """One line a case and output; findings in short, or whole with `full`."""
    from rich.table import Table

    from fusion.output.table import console

    table = Table(title=f"{operator} in {count(target, 'kernel')}, run on the CPU", title_justify="left")
    for column in ("case", "level", "verdict", "output", "ratio", "largest error", "needs"):
        table.add_column(column, overflow="fold")
    for r in results:
        _rows(table.add_row, r)
    console().print(table)
    for r in results:
        _explain(r, full)
    print(f"verdict: {overall(results)}")


def _rows(add: Callable[..., None], r: CaseResult) -> None:
    word = r.verdict.verdict if r.verdict else ("refused as it must be" if r.passed else "cannot be judged")
    outputs = list(r.verdict.outputs.items()) if r.verdict else []
    if not outputs:
        add(r.case.name, r.case.level, word, "", "", "", "")
    for i, (name, c) in enumerate(outputs):
        head = (r.case.name, r.case.level, word) if i == 0 else ("", "", "")
        needs = f"ratio {c.required.ratio:g}, error {c.required.max_abs:g}"
        ratio = shown_below(c.ratio) + (" FAILS" if c.ratio_fails else "")
        error = [f"{c.max_abs:.2e}" + (" FAILS" if c.error_fails else ""), *(() if c.special_match else ("inf/NaN elsewhere FAILS",))]
        add(*head, name, ratio, ", ".join(error), needs)


def _explain(r: CaseResult, full: bool) -> None:
    if r.problem:
        print(f"{r.case.name}: {r.problem}")
    for name, c in r.verdict.outputs.items() if r.verdict else ():
        if not c.passed:
            print(f"{r.case.name}: {name} misses the precision standard: {', '.join(c.failures())}")
    found: Sequence[Located] = () if r.verdict is None else r.verdict.findings if full else r.verdict.errors[:3]
    for finding in found:
        print(f"{r.case.name}: {finding}")
    if r.verdict and not full and len(r.verdict.errors) > len(found):
        print(f"{r.case.name}: {count(len(r.verdict.errors) - len(found), 'more finding')}; --full prints all")


@contextmanager
def progress_bar(total: int, quiet: bool) -> Generator[Callable[[str, int, int], None] | None]:
    """A bar on standard error where that is a terminal, else nothing."""
    if quiet or total < 2 or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("verifying", total=total)
        yield lambda name, done, _: bar.update(task, completed=done, description=name)
