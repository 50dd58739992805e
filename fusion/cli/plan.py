"""`fusion-plan OPERATOR`: plan, run passes, emit, lower, write the folder, and say what was done."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fusion.cli.options import operator_options

if TYPE_CHECKING:
    from fusion.cli.planning import Chosen, Compiled
    from fusion.output.summary import Summary
    from fusion.plan.types import Plan
    from fusion.verify.session import CaseResult


@click.command("plan")
@click.argument("operator")
@click.option("--target", type=int, metavar="N", help="How many kernels; without it the count that is estimated to be fastest.")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path), metavar="FILE", help="Use this plan instead of searching for one.")
@operator_options(shape="Parameters of the operator, like seq_len=8192,window=none.")
@click.option("--print-between-passes", is_flag=True, help="Print the plan after each pass.")
@click.option("--time-passes", is_flag=True, help="Say how long each pass took.")
@click.option(
    "--target-code", type=click.Choice(["ascendc", "pto", "both", "none"]), default="both", show_default=True, help="What to lower to."
)
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="The folder to write.  [default: out/OPERATOR-N]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, nothing else.")
@click.option("--fast", is_flag=True, help="Neither lower, nor verify, nor compare with other counts of kernels.")
@click.option(
    "--rerank",
    type=click.IntRange(1, 3),
    default=3,
    show_default=True,
    metavar="K",
    help="Simulate the K best estimates, take the fastest.",
)
@click.option("--no-verify", is_flag=True, help="Do not run the generated code on the CPU at a small shape.")
def plan(
    operator: str,
    target: int | None,
    plan_file: Path | None,
    shape: tuple[str, ...],
    dtype: str,
    device: str,
    pipeline: str,
    print_between_passes: bool,
    time_passes: bool,
    target_code: str,
    out: Path | None,
    as_json: bool,
    fast: bool,
    rerank: int,
    no_verify: bool,
) -> None:
    """Plan OPERATOR in N kernels, emit and lower them, and write sources, host wrapper and generated code to a folder.

    OPERATOR is a name from `fusion-plan list`, or path/to/op.py[:name]. Exit status 1 says that the run on the CPU has a
    finding, 2 that it could not be judged.
    """
    from fusion.cli import planning
    from fusion.cli.operators import build
    from fusion.output.files import program_files
    from fusion.output.folder import check_free, write_folder
    from fusion.output.summary import summarize
    from fusion.plan.device import limits_of
    from fusion.toolchain.progress import terminal

    _refuse_contradictions(pipeline, target_code)
    limits = limits_of(device)
    graph = build(operator, shape, dtype)
    if out:
        check_free(out)
    if plan_file:
        chosen = planning.plan_from_file(graph, plan_file, device, target, check=pipeline == "default")
    else:
        chosen = planning.best_plan(graph, device, target, compare=not fast, pipeline=pipeline)
        if rerank > 1 and not fast and target_code != "none":
            chosen = planning.reranked(chosen, device, pipeline, rerank)
    prepared = planning.prepare(chosen.plan, pipeline, _printer(as_json) if print_between_passes else None)
    program = planning.program_of(prepared.plan)
    folder = out or Path("out") / f"{graph.name}-{len(program.kernels)}"
    check_free(folder)
    with terminal() as observer:
        compiled = planning.compile_program(program, () if fast else planning.TARGETS[target_code], prepared.tir_passes, observer)
    summary = summarize(program, limits, compiled.ascendc)
    written = write_folder(folder, program_files(program, compiled.results))
    timings = dict(prepared.timings) if time_passes else {}
    results = None
    if compiled.ascendc and not no_verify:
        from fusion.cli.verify import judge

        results = judge(operator, chosen.plan, shape, dtype, device, pipeline)
    _tell(as_json, summary, written, chosen, prepared.refusals, timings, compiled, results)
    if any(r.blocks and r.verdict for r in results or []):
        raise SystemExit(1)
    if any(r.blocks for r in results or []):
        raise SystemExit(2)


def _refuse_contradictions(pipeline: str, target_code: str) -> None:
    from fusion.cli.contradictions import exclusive

    exclusive("--fast", "--rerank", why="nothing is simulated")
    exclusive("--plan", "--rerank", why="the plan is given, and none is searched for")
    if target_code != "none":
        exclusive("--fast", "--target-code", why="nothing is lowered")
    else:
        exclusive("--target-code", "--rerank", why="nothing is lowered that could be simulated")
    if pipeline in ("", "none"):
        exclusive("--passes", "--time-passes", "--print-between-passes", why="without passes there is nothing to tell of them")


def _printer(as_json: bool):
    def shown(name: str, left: Plan) -> None:
        click.echo(f"# after {name}\n{left}", err=as_json)

    return shown


def _tell(
    as_json: bool,
    summary: Summary,
    written: tuple[Path, ...],
    chosen: Chosen,
    refusals: tuple[str, ...],
    timings: dict[str, float],
    compiled: Compiled,
    results: list[CaseResult] | None,
) -> None:
    from fusion.output.why import why

    reasons = why(summary, chosen.others, chosen.us, chosen.file)
    reasons += [chosen.simulated] if chosen.simulated else []
    if as_json:
        import json

        from fusion.output.machine import report
        from fusion.verify.report import as_object

        content = report(summary, written, reasons, refusals, timings, compiled.missing)
        judged = as_object(summary.plan.graph.name, len(summary.kernels), results) if results else None
        click.echo(json.dumps({**content, "verification": judged}, indent=1))
    else:
        _print(summary, written, reasons, refusals, timings)
        if results:
            from fusion.verify.report import print_results

            print_results(summary.plan.graph.name, len(summary.kernels), results, full=False)
    if compiled.missing:
        click.echo(f"fusion-plan: not lowered, for there is no compiler: {compiled.missing}", err=True)


def _print(summary: Summary, written: tuple[Path, ...], reasons: list[str], refusals: tuple[str, ...], timings: dict[str, float]) -> None:
    from fusion.output.table import console, table, title, totals

    click.echo(title(summary))
    console().print(table(summary))
    click.echo(f"{totals(summary)}\n\nWhy this plan:\n" + "\n".join(f"  {line}" for line in reasons))
    _section("What the passes left as it is:", refusals)
    _section("How long the passes took:", [f"{name}: {1000 * seconds:.1f} ms" for name, seconds in timings.items()])
    folder = next(p.parent for p in written if p.name == "plan.json")
    click.echo(f"\nWritten to {_short(folder)}:")
    groups: dict[str, list[str]] = {}
    for path in written:
        inside = path.relative_to(folder)
        groups.setdefault(f"{inside.parent}/" if len(inside.parts) > 1 else "", []).append(inside.name)
    for group, names in sorted(groups.items()):
        click.echo(f"  {group}{' ' if group else ''}{' '.join(names)}")


def _section(title: str, lines: Sequence[str]) -> None:
    if lines:
        click.echo(f"\n{title}\n" + "\n".join(f"  {line}" for line in lines))


def _short(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
