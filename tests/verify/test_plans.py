"""Plans run on the CPU: the shipped ones are clean, one that races is refused by name and seen racing."""

from __future__ import annotations

from importlib.resources import files

import pytest

from fusion.errors import FusionError
from fusion.graph import StageGraph
from fusion.plan.text import from_text
from fusion.verify.data import Draw, random_inputs
from fusion.verify.run import RunOptions, verify_plan
from tests.verify.conftest import upstream


@pytest.mark.parametrize("count", [2, 4, 5, 6, 9])
def test_upstream_variants_are_clean(graph: StageGraph, count: int) -> None:
    found = verify_plan(upstream(graph, count), random_inputs(graph, Draw()))
    assert found.verdict == "clean", "\n".join(map(str, found.errors))
    assert set(found.outputs) == {"O", "lse", "dQ", "dK", "dV", "dSink"}
    assert all(c.ratio >= 0.99 for c in found.outputs.values())


@pytest.mark.parametrize("seed", [1, 2])
def test_random_legal_schedules_give_the_same_numbers(graph: StageGraph, seed: int) -> None:
    found = verify_plan(upstream(graph, 2), random_inputs(graph, Draw()), RunOptions(schedule_seed=seed))
    assert found.verdict == "clean"


def _racing() -> str:
    text = files("kernels").joinpath("plans/gqa_sink_bwd-6.plan").read_text()
    return text.replace("  workspace s slots 1 free", "  grid g q\n  loops k\n  workspace s slots 1")


def test_a_one_way_handoff_on_one_slot_is_refused_with_rule_and_stage(graph: StageGraph) -> None:
    with pytest.raises(FusionError, match=r"s: workspace_s goes cube->vector on one slot.*single-slots-are-ordered"):
        from_text(_racing(), graph)


def test_and_really_races(graph: StageGraph) -> None:
    found = verify_plan(from_text(_racing(), graph, check=False), random_inputs(graph, Draw()))
    assert found.verdict == "race"
    race = next(f for f in found.errors if f.finding.buffer == "workspace_s")
    assert race.kernel == "qk_softmax" and "workspace_s (s, cube->vector)" in race.handoff
    assert {race.first.stage, race.second.stage} <= {"qk", "softmax"} if race.first and race.second else False


def test_numbers_that_do_not_fit_are_called_wrong(graph: StageGraph) -> None:
    """The golden of other inputs: nothing races, and nothing agrees."""
    import torch

    from fusion.emit.emit import emit
    from fusion.verify import run

    program = emit(upstream(graph, 2))
    lowered = run.lower_program(program)
    inputs = random_inputs(graph, Draw())
    original = run.evaluate
    run.evaluate = lambda g, x, by_phase=False: {k: v + 1 for k, v in original(g, x, by_phase=by_phase).items()}  # type: ignore[assignment]
    try:
        found = run.verify_program(program, lowered, {k: v.to(torch.float32) for k, v in inputs.items()}, RunOptions())
    finally:
        run.evaluate = original
    assert found.verdict == "wrong" and not any(c.passed for c in found.outputs.values())
