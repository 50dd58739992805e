"""The runner holds each pass to its word, checks what it leaves, and names it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest

from fusion.errors import FusionError
from fusion.graph import StageGraph
from fusion.passes import GraphPass, PassResult, PlanPass, find, parse_pipeline, run_graph_pipeline, run_pipeline
from fusion.plan.types import Kernel, Plan
from tests.passes.small import backward, fused


@dataclass(frozen=True)
class Liar(PlanPass):
    """Says the opposite of what it did."""

    name: ClassVar[str] = "liar"
    change: bool = True

    def apply(self, artefact: Plan) -> PassResult[Plan]:
        return PassResult(replace(artefact, notes=("new",)) if self.change else artefact, not self.change)


@dataclass(frozen=True)
class Mutator(PlanPass):
    """Changes the plan that it is given."""

    name: ClassVar[str] = "mutator"

    def apply(self, artefact: Plan) -> PassResult[Plan]:
        object.__setattr__(artefact, "notes", ("mutated",))
        return PassResult(artefact, False)


@dataclass(frozen=True)
class BadName(PlanPass):
    """Takes the word that the compiler looks for out of the names."""

    name: ClassVar[str] = "bad-name"

    def apply(self, artefact: Plan) -> PassResult[Plan]:
        def renamed(k: Kernel) -> Kernel:
            return replace(k, handoffs=tuple(replace(h, name=f"gm_{h.value}") for h in k.handoffs))

        return PassResult(replace(artefact, kernels=tuple(map(renamed, artefact.kernels))), True)


@dataclass(frozen=True)
class DropStage(GraphPass):
    """Loses the last stage."""

    name: ClassVar[str] = "drop-stage"

    def apply(self, artefact: StageGraph) -> PassResult[StageGraph]:
        return PassResult(artefact.with_stages(artefact.stages[:-1]), True)


@pytest.mark.parametrize("change", [True, False])
def test_a_pass_must_say_what_it_did(change: bool) -> None:
    with pytest.raises(FusionError, match=rf"pass liar: says that it .*\n  return modified={change}"):
        run_pipeline(fused(), [Liar(change)])


def test_a_pass_must_not_touch_what_it_is_given() -> None:
    with pytest.raises(FusionError, match="pass mutator: changed the artefact that it was given"):
        run_pipeline(fused(), [Mutator()])


def test_the_culprit_is_named() -> None:
    good = parse_pipeline("retain-in-ub")
    with pytest.raises(FusionError, match=r"pass bad-name: leaves an illegal plan: k1\.gm_s: .*workspaces-are-named"):
        run_pipeline(fused(), [*good, BadName()])
    with pytest.raises(FusionError, match="pass drop-stage: leaves a broken graph: output dK is not assigned"):
        run_pipeline(fused(), [*good, DropStage()])
    with pytest.raises(FusionError, match="pass drop-stage: leaves a broken graph"):
        run_graph_pipeline(backward(), [DropStage()])


def test_what_was_broken_before_is_not_a_pass_s_fault() -> None:
    broken = run_pipeline(fused(), [BadName()], verify=False).artefact
    result = run_pipeline(broken, parse_pipeline("retain-in-ub,name-workspaces"))
    assert result.modified == ("retain-in-ub", "name-workspaces")
    assert next(h.name for h in result.artefact.kernels[0].handoffs) == "workspace_gm_s"


def test_a_mistake_in_an_option_names_the_pass() -> None:
    with pytest.raises(FusionError, match=r"pass compensate-gemm: no Cube stage 'dkk'\n  did you mean dk"):
        run_pipeline(fused(), parse_pipeline("compensate-gemm{stages=dkk}"))


def test_timings_and_printing_between() -> None:
    seen: list[tuple[str, bool]] = []
    timed: list[str] = []
    passes = parse_pipeline("retain-in-ub,free-handoff,workspace-names{rename=true}")
    result = run_pipeline(
        fused(),
        passes,
        print_between=lambda p, plan: seen.append((p.name, plan == fused())),
        timer=lambda p, seconds: timed.append(p.name) if seconds >= 0 else None,
    )
    assert seen == [("retain-in-ub", False), ("free-handoff", False)]
    assert timed == [name for name, _ in result.timings] == ["retain-in-ub", "free-handoff"]
    assert [t.name for t in result.tir_passes] == ["workspace-names"]


def test_graph_passes_run_before_a_plan_is_made() -> None:
    result = run_graph_pipeline(backward(), parse_pipeline("compensate-gemm,name-workspaces"))
    assert result.modified == ("compensate-gemm",)
    assert result.artefact.value("dk_acc_fix").dtype == "float32"


def test_nothing_to_do_leaves_the_plan_as_it_is() -> None:
    plan = fused()
    assert run_pipeline(plan, [find("name-workspaces").cls()]).artefact is not None
    assert run_pipeline(plan, parse_pipeline("name-workspaces,free-handoff,split-oversize")).artefact == plan
