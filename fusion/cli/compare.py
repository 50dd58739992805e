"""`fusion-plan compare OPERATOR`: plans side by side, as a table, JSON, CSV, an HTML page, and a trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fusion.cli.options import operator_options

if TYPE_CHECKING:
    from fusion.device import Device
    from fusion.graph import StageGraph


FAST = ("Nothing was lowered or simulated: all times are the planner's estimates, after the passes.",)


@click.command("compare")
@click.argument("operator")
@click.option(
    "--targets", default="", metavar="N,N,...", help="Counts of kernels to plan for.  [default: those of 9,6,5,4,3,2,1 that are possible]"
)
@click.option("--plans", default="", metavar="upstream|FILE,...", help="Compare these plans instead: the published ones, or plan files.")
@operator_options(shape="Parameters of the operator, like seq_len=4096,window=128.")
@click.option(
    "--rerank",
    "keep",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    metavar="K",
    help="Simulate the K best estimates of each count, take the fastest.",
)
@click.option("--fast", is_flag=True, help="Estimates only: nothing is lowered or simulated, and no page is written.")
@click.option("--json", "as_json", is_flag=True, help="One JSON list on standard output, nothing else.")
@click.option("--csv", "as_csv", is_flag=True, help="CSV on standard output, nothing else.")
@click.option(
    "--html",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a page with pictures.  [default: out/OPERATOR-compare.html; with --json or --csv none]",
)
@click.option("--trace", type=click.Path(path_type=Path), metavar="FILE", help="Write the best plan's timeline for Perfetto or Chrome.")
def compare(
    operator: str,
    targets: str,
    plans: str,
    shape: tuple[str, ...],
    dtype: str,
    device: str,
    pipeline: str,
    keep: int,
    fast: bool,
    as_json: bool,
    as_csv: bool,
    html: Path | None,
    trace: Path | None,
) -> None:
    """Set the plans of OPERATOR side by side: predicted time, what bounds it, and which is best and why."""
    from fusion.cli import planning
    from fusion.cli.contradictions import exclusive
    from fusion.cli.operators import build
    from fusion.compare import session
    from fusion.compare.rows import why
    from fusion.compare.table import as_csv as csv_text
    from fusion.compare.table import table
    from fusion.device import load
    from fusion.output.table import console
    from fusion.plan.types import Plan

    exclusive("--json", "--csv", why="both are all of standard output")
    exclusive("--fast", "--html", "--trace", "--rerank", why="nothing is simulated, and there is no timeline to show")
    exclusive("--plans", "--targets", "--rerank", why="the plans are given, and none is searched for")
    described, graph = load(device), build(operator, shape, dtype)

    def prepare(plan: Plan) -> Plan:
        return planning.prepare(plan, pipeline, None).plan

    def progress(what: str, done: int, total: int) -> None:
        click.echo(f"[{done + 1}/{total}] {what}", err=True)

    if plans:
        named = session.upstream_plans(graph, described) if plans == "upstream" else session.plan_files(graph, plans.split(","), described)
        entries = session.compare_plans(named, graph, described, prepare, fast, progress)
    else:
        entries = session.compare_targets(
            graph, counts(targets) if targets else possible_counts(graph), described, prepare, fast, keep, progress
        )
    reasons = why(entries)
    if as_json:
        click.echo(json.dumps([e.to_json() for e in entries], indent=1))
    elif as_csv:
        click.echo(csv_text(entries), nl=False)
    else:
        console().print(table(entries))
        extrapolated = dict.fromkeys(f"{e.plan}: {note}" for e in entries if e.time for note in e.time.notes)
        for line in [*reasons, *extrapolated, *(FAST if fast else notes(graph.name, described))]:
            click.echo(line)
    _pictures(entries, reasons, graph.name, html, trace, fast, quiet=as_json or as_csv)


def possible_counts(graph: StageGraph) -> tuple[int, ...]:
    """The usual counts, as far as the operator has so many stages that can be apart; one only where a single launch can do all."""
    from fusion.plan.planner import Planner

    stages = len(Planner(graph).atoms)
    least = 2 if graph.host_edges() else 1
    return tuple(n for n in (9, 6, 5, 4, 3, 2, 1) if least <= n <= stages) or (stages,)


def counts(text: str) -> tuple[int, ...]:
    """ "9,6,2" -> (9, 6, 2)."""
    from fusion.errors import FusionError

    parts = [p.strip() for p in text.split(",") if p.strip()]
    if not parts or not all(p.isdigit() and int(p) > 0 for p in parts):
        raise FusionError(f"--targets {text!r}", remedy="give counts of kernels, like 9,6,4,2")
    return tuple(dict.fromkeys(int(p) for p in parts))


def notes(operator: str, device: Device) -> list[str]:
    """How sure the times are, and why."""
    sure = f"Times are ±{100 * device.interval_of(operator):.0f} %"
    if not device.calibrated:
        return [f"{sure}: {device.name} is not calibrated, they are from public figures. `fusion-plan calibrate` narrows this."]
    if operator not in device.measured:
        known = ", ".join(device.measured) or "microbenchmarks"
        return [f"{sure}: {operator} is uncalibrated, {device.name} was calibrated with kernels of {known}. Measure one, and calibrate."]
    return [f"{sure} (nine of ten kernels like those of the calibration); differences inside of that are ties."]


def _pictures(entries: list, reasons: list[str], name: str, html: Path | None, trace: Path | None, fast: bool, quiet: bool) -> None:  # type: ignore[type-arg]
    if fast:
        return
    from fusion.errors import FusionError
    from fusion.report.html import page
    from fusion.report.perfetto import trace_json

    target = html or Path("out") / f"{name}-compare.html"
    if html or not quiet:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page(name, entries, reasons), encoding="utf-8")
        click.echo(f"Written: {target}", err=quiet)
    best = next((e for e in entries if e.verdict == "best" and e.time), None)
    if trace and best is None:
        raise FusionError(f"--trace {trace}: no plan has a timeline", remedy="the table says why each plan is impossible")
    if trace and best is not None:
        trace.parent.mkdir(parents=True, exist_ok=True)
        trace.write_text(trace_json(best), encoding="utf-8")
        click.echo(f"Written: {trace}", err=quiet)
