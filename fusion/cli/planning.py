"""From an operator to a program: the plan asked for, its neighbours to compare with, the passes, the sources, the compiler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from fusion import words
from fusion.emit.emit import emit
from fusion.emit.program import Program
from fusion.errors import FusionError
from fusion.graph import StageGraph, to_text
from fusion.output.summary import plan_us
from fusion.passes import AnyPass, parse_pipeline, run_pipeline
from fusion.passes.check import plan_problems
from fusion.plan.device import limits_of
from fusion.plan.jsonform import from_json, to_json
from fusion.plan.planner import KEEP, Planned, Planner
from fusion.plan.store import recall, remember
from fusion.plan.text import from_text
from fusion.plan.types import Plan
from fusion.toolchain.model import KernelSource, Lowered, LowerError, Target, TirPass
from fusion.toolchain.progress import Observer

TIE = 0.04  # mean error of whole plans' estimates, see docs/timeline.md
HOPEFUL = 1.6  # passes change a plan's time by less than this
TARGETS: dict[str, tuple[Target, ...]] = {"ascendc": ("ascendc",), "pto": ("pto",), "both": ("ascendc", "pto"), "none": ()}


@dataclass(frozen=True)
class Chosen:
    """The plan to go on with, and estimates (or the reason why not) for other counts of kernels."""

    plan: Plan
    others: dict[int, float | str] = field(default_factory=dict[int, "float | str"])
    us: float = 0.0  # estimated before the passes; the others after them
    file: str = ""
    rivals: tuple[Plan, ...] = ()  # the next best plans with as many kernels, by the estimate
    simulated: str = ""  # what simulating the rivals showed


def plan_from_file(graph: StageGraph, path: Path, device: str, target: int | None, check: bool) -> Chosen:
    """The plan of a file. Raises FusionError if it has not `target` kernels."""
    limits = limits_of(device)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FusionError(f"--plan {path}: {getattr(error, 'strerror', None) or 'no text file'}", remedy="give a plan file") from error
    plan = from_text(text, graph, str(path), limits, check=check)
    if target is not None and target != len(plan.kernels):
        raise FusionError(
            f"--target {target}, but {path} has {words.count(len(plan.kernels), 'kernel')}", remedy="leave out one of --target and --plan"
        )
    return Chosen(plan, us=plan_us(plan), file=str(path))


def best_plan(graph: StageGraph, device: str, target: int | None, compare: bool, pipeline: str) -> Chosen:
    """The cheapest plan with `target` kernels, or of any count; with `compare` the neighbouring counts too. Answers are remembered.

    Counts are compared by what their best plans take after the passes of `pipeline`.
    """
    question = f"{to_text(graph)}\0{device}\0{target}\0{compare}\0{pipeline}\0{limits_of(device)}"
    known = recall(question)
    if known:
        others = cast("dict[str, float | str]", known["others"])
        plan, *rivals = (from_json(text) for text in cast("list[str]", known["plans"]))
        return Chosen(plan, {int(n): o for n, o in others.items()}, float(str(known["us"])), rivals=tuple(rivals))
    chosen = _best_plan(graph, device, target, compare, pipeline)
    plans = [to_json(p) for p in (chosen.plan, *chosen.rivals)]
    remember(question, {"plans": plans, "others": chosen.others, "us": chosen.us})
    return chosen


def reranked(chosen: Chosen, device: str, pipeline: str, count: int) -> Chosen:
    """The fastest of the best `count` plans by simulation; the estimate's choice stands where nothing can be simulated."""
    from fusion.compare.rerank import rerank
    from fusion.device import load

    plans = (chosen.plan, *chosen.rivals)[:count]
    if len(plans) < 2:
        return chosen
    before: dict[Plan, Plan] = {}

    def prepared(plan: Plan) -> Plan:
        after = prepare(plan, pipeline, None).plan
        before[after] = plan
        return after

    try:
        ranked = rerank([Planned(p, 0.0, (), 0.0) for p in plans], load(device), prepared)
    except FusionError as error:
        return replace(chosen, simulated=f"not simulated: {error.what}")
    times = ", ".join(f"{r.time.us:.0f}" for r in ranked)
    text = f"the fastest of the {len(ranked)} best estimates when their code is simulated ({times} us)"
    return replace(chosen, plan=before[ranked[0].plan], simulated=text)


def _best_plan(graph: StageGraph, device: str, target: int | None, compare: bool, pipeline: str) -> Chosen:
    planner = Planner(graph, limits_of(device), device)
    most = len(planner.atoms)
    if target is None:
        found = planner.possible(tuple(range(1, most + 1)), KEEP)
        legal = [n for n in found if found[n]]
        if not legal:
            raise planner.impossible(1)
        target = _best_count({n: found[n][0] for n in legal}, pipeline)
    else:
        counts = [n for n in (target - 1, target, target + 1) if 1 <= n <= most] if compare and 1 <= target <= most else []
        found = planner.possible(tuple(counts), KEEP) if target in counts else planner.plans((target,), KEEP)
        if not found[target]:
            raise planner.impossible(target)
    near = (n for n in (target - 1, target + 1) if n in found and compare)
    others: dict[int, float | str] = {n: _us_after(found[n][0].plan, pipeline) if found[n] else planner.impossible(n).what for n in near}
    best, *rivals = found[target]
    return Chosen(best.plan, others, best.us, rivals=tuple(r.plan for r in rivals))


def _us_after(plan: Plan, pipeline: str) -> float:
    """The estimate after the passes; before them where they leave no legal plan."""
    try:
        return plan_us(prepare(plan, pipeline, None).plan)
    except FusionError:
        return plan_us(plan)


def _best_count(best: Mapping[int, Planned], pipeline: str) -> int:
    """The fewest kernels of those whose estimates after the passes are as good as the best: the estimate cannot tell them apart."""
    least = min(p.us for p in best.values())
    after = {n: _us_after(p.plan, pipeline) for n, p in best.items() if p.us <= HOPEFUL * least}
    return min(n for n, us in after.items() if us <= (1.0 + TIE) * min(after.values()))


# ---- passes


@dataclass(frozen=True)
class Prepared:
    """The plan after its passes: what they refused, how long they took, and what is left for the compiler to run."""

    plan: Plan
    refusals: tuple[str, ...]
    timings: tuple[tuple[str, float], ...]
    tir_passes: tuple[TirPass, ...]


def prepare(plan: Plan, pipeline: str, shown: Callable[[str, Plan], None] | None) -> Prepared:
    """Runs the passes, then checks every rule. Raises FusionError with the first that is broken."""
    passes = () if pipeline in ("", "none") else parse_pipeline(pipeline)

    def between(p: AnyPass, left: Plan) -> None:
        if shown:
            shown(p.name, left)

    result = run_pipeline(plan, passes, print_between=between)
    problems = plan_problems(result.artefact)
    if problems:
        raise FusionError(f"the plan is not legal: {problems[0]}", where=plan.graph.name, remedy="--passes repair mends what it can")
    refusals = tuple(f"{name}: {refusal}" for name, refusal in result.refusals)
    return Prepared(result.artefact, refusals, result.timings, result.tir_passes)


def program_of(plan: Plan) -> Program:
    return emit(plan, limits_of(plan.device))


# ---- compiler


@dataclass(frozen=True)
class Compiled:
    """What the compiler made of the kernels; `missing` says why there is no compiler."""

    results: tuple[Lowered, ...] = ()
    missing: str = ""

    @property
    def ascendc(self) -> dict[str, str]:
        return {r.name: r.ascendc for r in self.results if r.ascendc}


def compile_program(
    program: Program,
    targets: tuple[Target, ...],
    tir_passes: tuple[TirPass, ...],
    observer: Observer,
    progress: Callable[[str, int, int], None] | None = None,
) -> Compiled:
    """Lowers all kernels. Raises FusionError naming every kernel that the compiler fails on; no compiler at all is not an error."""
    if not targets:
        return Compiled()
    from fusion.toolchain import lower

    sources = [KernelSource(k.name, k.source) for k in program.kernels]
    results = lower(sources, targets, tir_passes=tir_passes, observer=observer, progress=progress)
    errors = [(r.name, r.error) for r in results if r.error]
    real = [(n, e) for n, e in errors if e.kind != "unavailable"]
    if real:
        raise _failed(len(results), real)
    if errors:
        first = errors[0][1]
        return Compiled(missing=first.message + (f"; {first.details}" if first.details else ""))
    return Compiled(tuple(results))


def _failed(number: int, errors: list[tuple[str, LowerError]]) -> FusionError:
    """One line a kernel."""
    texts = [f"{name} ({e.target}, {e.kind}{f' in {e.pass_name}' if e.pass_name else ''}): {e.message}" for name, e in errors]
    remedy = "nothing was written; --target-code none writes the sources without the compiler"
    return FusionError(f"the compiler fails on {len(errors)} of {words.count(number, 'kernel')}:\n  " + "\n  ".join(texts), remedy=remedy)
