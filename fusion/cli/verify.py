"""`fusion-plan verify OPERATOR`: run the generated Ascend C of a plan on the CPU and say whether it is right."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fusion.cli.options import operator_options

if TYPE_CHECKING:
    from fusion.plan.types import Plan
    from fusion.verify.session import CaseResult


@click.command("verify")
@click.argument("operator")
@click.option("--target", type=int, metavar="N", help="How many kernels; without it the count that is estimated to be fastest.")
@click.option("--plan", "plan_file", type=click.Path(path_type=Path), metavar="FILE", help="Verify this plan instead of searching for one.")
@operator_options(shape="Parameters of the operator; the run uses small shapes derived from them.")
@click.option(
    "--level", type=click.Choice(["L0", "L1", "L2", "boundary", "all"]), help="Run the cases of a level instead of one small shape."
)
@click.option("--exact-shape", is_flag=True, help="Run the given shape itself, however long that takes.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the inputs.")
@click.option("--schedule", type=int, metavar="SEED", help="Run one random legal schedule of all pipes instead of checking order.")
@click.option("--full", is_flag=True, help="Print every finding whole, warnings too.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, nothing else.")
def verify(
    operator: str,
    target: int | None,
    plan_file: Path | None,
    shape: tuple[str, ...],
    dtype: str,
    device: str,
    pipeline: str,
    level: str | None,
    exact_shape: bool,
    seed: int,
    schedule: int | None,
    full: bool,
    as_json: bool,
) -> None:
    """Run the generated code of OPERATOR's plan on the CPU: numbers against the golden, order, memory.

    Exit status 0 if all cases that block are clean, 1 if there is a finding, 2 if it cannot be judged.
    """
    from dataclasses import replace

    from fusion.cli import planning
    from fusion.cli.contradictions import exclusive
    from fusion.cli.operators import build, load, parameters
    from fusion.plan.device import limits_of
    from fusion.verify import cases as all_cases
    from fusion.verify.report import as_object, print_results, progress_bar
    from fusion.verify.run import RunOptions
    from fusion.verify.session import run_cases

    exclusive("--level", "--exact-shape", why="a level has shapes of its own")
    limits = limits_of(device)
    graph, op, values = build(operator, shape, dtype), load(operator), parameters(operator, shape, dtype)
    if plan_file:
        chosen = planning.plan_from_file(graph, plan_file, device, target, check=True).plan
    else:
        chosen = planning.best_plan(graph, device, target, compare=False, pipeline=pipeline).plan
    if exact_shape:
        chosen_cases = [all_cases.Case("given shape", "L0", tuple(sorted(values.items())))]
    elif level:
        chosen_cases = all_cases.cases_of(op, values, all_cases.LEVELS if level == "all" else (level,))
    else:
        chosen_cases = [all_cases.default_case(op, values)]
    if seed:
        chosen_cases = [replace(c, draw=replace(c.draw, seed=c.draw.seed + seed)) for c in chosen_cases]
    options = RunOptions(schedule_seed=schedule)
    with progress_bar(len(chosen_cases), as_json) as progress:
        results = run_cases(op, chosen, chosen_cases, limits, lambda p: planning.prepare(p, pipeline, None).plan, progress, options)
    if as_json:
        click.echo(json.dumps(as_object(graph.name, len(chosen.kernels), results), indent=1))
    else:
        print_results(graph.name, len(chosen.kernels), results, full)
    _exit(results)


def judge(operator: str, plan: Plan, shape: tuple[str, ...], dtype: str, device: str, pipeline: str) -> list[CaseResult]:
    """The verdict on a plan at one small shape, for the main command. What cannot be judged (no g++, say) is a result too."""
    from fusion.cli import planning
    from fusion.cli.operators import load, parameters
    from fusion.plan.device import limits_of
    from fusion.verify.cases import default_case
    from fusion.verify.session import run_cases

    op = load(operator)
    case = default_case(op, parameters(operator, shape, dtype))
    return run_cases(op, plan, [case], limits_of(device), lambda p: planning.prepare(p, pipeline, None).plan)


def _exit(results: list[CaseResult]) -> None:
    blocking = [r for r in results if r.blocks]
    if any(r.problem for r in blocking):
        raise SystemExit(2)
    if blocking:
        raise SystemExit(1)
