"""Runs passes one after the other, checks what each leaves, and names the one that breaks something."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from fusion.errors import FusionError
from fusion.passes.base import AnyPass, CompilerPass, GraphPass, PassResult, PlanPass

if TYPE_CHECKING:
    from fusion.graph import StageGraph
    from fusion.plan.types import Plan, Refusal
    from fusion.toolchain.model import TirPass

A = TypeVar("A")
Between = Callable[[AnyPass, A], None]
Timer = Callable[[AnyPass, float], None]


@dataclass(frozen=True)
class PipelineResult(Generic[A]):
    """What a pipeline leaves: the artefact, (pass, refusal) pairs, (pass, seconds) pairs, and what is left for the compiler to run."""

    artefact: A
    refusals: tuple[tuple[str, Refusal], ...] = ()
    timings: tuple[tuple[str, float], ...] = ()
    tir_passes: tuple[TirPass, ...] = ()
    modified: tuple[str, ...] = ()


def run_graph_pipeline(
    graph: StageGraph,
    passes: Iterable[AnyPass],
    *,
    verify: bool = True,
    print_between: Between[StageGraph] | None = None,
    timer: Timer | None = None,
) -> PipelineResult[StageGraph]:
    """Runs the graph passes among `passes`, before a plan is made; the others are for `run_pipeline` with the plan."""
    mine = [p for p in passes if isinstance(p, GraphPass)]
    return _run(graph, mine, lambda p, g: p.run(g), _check_graph if verify else None, print_between, timer)


def run_pipeline(
    plan: Plan,
    passes: Iterable[AnyPass],
    *,
    verify: bool = True,
    print_between: Between[Plan] | None = None,
    timer: Timer | None = None,
) -> PipelineResult[Plan]:
    """Runs graph and plan passes on a plan; collects those for the compiler.

    After each pass every invariant and rule is checked; one that is broken and was not before is the pass's fault and raises FusionError
    with its name. `print_between` gets each pass with the plan that it left, `timer` each pass with its seconds.
    """
    from fusion.passes.check import plan_problems

    given = tuple(passes)
    known = {(r.rule, r.where) for r in plan_problems(plan)} if verify else set[tuple[str, str]]()

    def check(p: AnyPass, left: Plan) -> None:
        _check_plan(p, left, known)

    mine = [p for p in given if not isinstance(p, CompilerPass)]
    result = _run(plan, mine, _on_plan, check if verify else None, print_between, timer)
    tir = tuple(p.spec() for p in given if isinstance(p, CompilerPass))
    return PipelineResult(result.artefact, result.refusals, result.timings, tir, result.modified)


P = TypeVar("P", bound=AnyPass)


def _run(
    artefact: A,
    passes: Iterable[P],
    run: Callable[[P, A], PassResult[A]],
    check: Callable[[P, A], None] | None,
    print_between: Callable[[P, A], None] | None,
    timer: Callable[[P, float], None] | None,
) -> PipelineResult[A]:
    refusals: list[tuple[str, Refusal]] = []
    timings: list[tuple[str, float]] = []
    modified: list[str] = []
    for p in passes:
        start = time.perf_counter()
        result = _named(p, run, artefact)
        seconds = time.perf_counter() - start
        artefact = result.artefact
        refusals += [(p.name, r) for r in result.refusals]
        timings.append((p.name, seconds))
        modified += [p.name] if result.modified else []
        if timer:
            timer(p, seconds)
        if print_between:
            print_between(p, artefact)
        if check and result.modified:
            check(p, artefact)
    return PipelineResult(artefact, tuple(refusals), tuple(timings), (), tuple(modified))


def _named(p: P, run: Callable[[P, A], PassResult[A]], artefact: A) -> PassResult[A]:
    try:
        return run(p, artefact)
    except FusionError as error:
        where = error.where if error.where.startswith("pass ") else f"pass {p.name}" + (f": {error.where}" if error.where else "")
        raise FusionError(error.what, where=where, remedy=error.remedy) from error


def _on_plan(p: AnyPass, plan: Plan) -> PassResult[Plan]:
    if isinstance(p, GraphPass):
        rewritten = p.run(plan.graph)
        if not rewritten.modified:
            return PassResult(plan, False, rewritten.refusals)
        _check_graph(p, rewritten.artefact)
        carried = p.rebase(plan, rewritten.artefact)
        return PassResult(carried.artefact, carried.modified, rewritten.refusals + carried.refusals)
    assert isinstance(p, PlanPass)
    return p.run(plan)


def _check_graph(p: AnyPass, graph: StageGraph) -> None:
    from fusion.graph import verify

    try:
        verify(graph)
    except FusionError as error:
        raise FusionError(f"leaves a broken graph: {error.what}", where=f"pass {p.name}") from error


def _check_plan(p: AnyPass, plan: Plan, known: set[tuple[str, str]]) -> None:
    from fusion.passes.check import plan_problems

    try:
        problems = plan_problems(plan)
    except FusionError as error:
        raise FusionError(f"leaves a broken graph: {error.what}", where=f"pass {p.name}") from error
    for r in problems:
        if (r.rule, r.where) not in known:
            raise FusionError(f"leaves an illegal plan: {r}", where=f"pass {p.name}")
