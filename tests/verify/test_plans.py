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


def _with_relays(threads: int) -> str:
    text = files("kernels").joinpath("plans/gqa_sink_bwd-4.plan").read_text()
    head = "kernel fwd: fwd_qk fwd_softmax fwd_pv fwd_rescale fwd_finish\n"
    assert head in text
    return text.replace(head, head + f"  threads {threads}\n  relay fs\n  relay fp_cast\n  relay pv\n")


def test_the_compilers_relays_carry_the_forward(graph: StageGraph) -> None:
    plan = from_text(_with_relays(1), graph)
    found = verify_plan(plan, random_inputs(graph, Draw()))
    assert not found.errors and found.outputs["O"].passed and found.outputs["lse"].passed
    assert {p.memory for p in plan.kernels[0].placements if p.value in ("fs", "fp_cast", "pv")} == {"relay"}


def test_relays_between_two_vector_cores_are_refused(graph: StageGraph) -> None:
    with pytest.raises(FusionError, match=r"fs: goes by relay, but 2 Vector cores share its tile.*relays-are-plain"):
        from_text(_with_relays(2), graph)


def test_numbers_that_do_not_fit_are_called_wrong(graph: StageGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    """The golden of something else: nothing races, and nothing agrees."""
    from fusion.graph import evaluate as golden

    original = golden.evaluate
    monkeypatch.setattr(golden, "evaluate", lambda *a, **k: {n: t + 1 for n, t in original(*a, **k).items()})
    found = verify_plan(upstream(graph, 2), random_inputs(graph, Draw()))
    assert found.verdict == "wrong" and not any(c.passed for c in found.outputs.values())
