"""Verification of an operator: the same plan carried over to every case's shape, run, and judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from fusion.emit.emit import emit
from fusion.errors import FusionError
from fusion.graph import Operator, StageGraph
from fusion.plan.device import Limits
from fusion.plan.text import from_text
from fusion.plan.types import Plan
from fusion.verify.cases import BLOCKING, Case
from fusion.verify.data import random_inputs, tempered
from fusion.verify.run import PlanVerdict, RunOptions, lower_program, verify_program
from fusion.verify.store import key, remember, remembered

WORKERS = 2
Prepare = Callable[[Plan], Plan]
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class CaseResult:
    """One case: what the run showed, or why it could not be judged (`problem`); `passed` for a case that must be refused and was."""

    case: Case
    verdict: PlanVerdict | None
    problem: str = ""

    @property
    def passed(self) -> bool:
        return self.verdict.verdict == "clean" if self.verdict else not self.problem

    @property
    def blocks(self) -> bool:
        return not self.passed and self.case.level in BLOCKING


def carried_over(plan: Plan, graph: StageGraph, limits: Limits) -> Plan:
    """The plan's kernels on another shape of the operator: the same stages and loops; tiles and slots are chosen anew."""
    lines = [f"plan {plan.graph.name}", ""]
    for k in plan.kernels:
        rest = {d for s in k.stages for d in graph.stage_dims(s)} - set(k.loops)
        grid = " ".join(d.name for d in graph.dims if d.name in rest)
        lines += [f"kernel {k.name}: {' '.join(k.stages)}", f"  grid {grid}"]
        lines += [f"  loops {' '.join(k.loops)}"] if k.loops else []
    lines += [f"host: {' '.join(plan.host_stages)}"] if plan.host_stages else []
    return from_text("\n".join(lines), graph, f"plan of {plan.graph.name}", limits)


def run_cases(
    operator: Operator[...],
    plan: Plan,
    cases: Sequence[Case],
    limits: Limits,
    prepare: Prepare,
    progress: Progress | None = None,
    options: RunOptions | None = None,
) -> list[CaseResult]:
    """All cases in order, two at a time. `prepare` runs the passes on the plan of each shape."""
    done: list[int] = []

    def one(case: Case) -> CaseResult:
        result = _run(operator, plan, case, limits, prepare, options or RunOptions())
        done.append(1)
        if progress:
            progress(case.name, len(done), len(cases))
        return result

    pool = ThreadPoolExecutor(WORKERS)
    try:
        return list(pool.map(one, cases))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # at an interrupt no further case is begun


def _run(operator: Operator[...], plan: Plan, case: Case, limits: Limits, prepare: Prepare, options: RunOptions) -> CaseResult:
    try:
        graph = operator.build(**dict(case.parameters))
    except FusionError as error:
        return CaseResult(case, None, "" if case.refused else str(error))
    except Exception as error:  # of the operator's own code
        return CaseResult(case, None, f"the operator fails with {type(error).__name__}: {error}; it has to refuse this with a FusionError")
    if case.refused:
        return CaseResult(case, None, "was to be refused, but was accepted")
    try:
        program = emit(prepare(carried_over(plan, graph, limits)), limits)
        lowered = lower_program(program)
        name = key(program, lowered, repr(case.draw), options)
        verdict = remembered(name)
        if verdict is None:
            verdict = verify_program(program, lowered, random_inputs(graph, tempered(graph, case.draw)), options)
            remember(name, verdict)
        return CaseResult(case, verdict)
    except FusionError as error:
        return CaseResult(case, None, str(error))
