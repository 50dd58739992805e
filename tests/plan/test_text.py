"""Plan files: what may be written, what is chosen where a file is silent, and what each mistake is told."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from fusion.errors import FusionError
from fusion.graph import Graph, StageGraph, cast, contract, relu
from fusion.plan.device import Limits
from fusion.plan.jsonform import from_json, to_json
from fusion.plan.planner import Planner
from fusion.plan.text import from_text, to_text
from fusion.plan.types import Plan
from kernels.attention_sink import gqa_sink_bwd
from tests.plan.variants import COUNTS, load, small
from tests.strategies import stage_graphs


def chain(m: int = 512, n: int = 128, k: int = 512) -> StageGraph:
    """Y = half(relu(half(relu(A B)) W))."""
    g = Graph("chain")
    for name, size in (("m", m), ("n", n), ("k", k), ("e", 128)):
        g.dim(name, size)
    A = g.input("A", "m k", "float16")
    B = g.input("B", "k n", "float16")
    W = g.input("W", "n e", "float16")
    with g.cube("up"):
        u = g.let("u", contract(A, B, over="k"))
    with g.vector("act"):
        a = g.let("a", cast(relu(u), "float16"))
    with g.cube("down"):
        y = g.let("y", contract(a, W, over="n"))
    with g.vector("round"):
        Y = g.let("Y", cast(relu(y), "float16"))
    g.output(Y)
    return g.build()


WHOLE = """plan chain on 910B3
tiles m=64 n=128 k=128 e=128

kernel first: up act
  grid m
  loops k
  persistent no
  threads 2
  workspace u as workspace_scores slots 1
kernel second: down round
host:
note made by hand
"""


def test_all_that_a_file_says_is_in_the_plan() -> None:
    plan = from_text(WHOLE, chain())
    first = plan.kernels[0]
    assert (first.name, first.grid, first.loops, first.persistent, first.threads) == ("first", ("m",), ("k",), False, 2)
    assert [(h.value, h.name, h.slots) for h in first.handoffs] == [("u", "workspace_scores", 1)]
    assert dict(plan.tiles) == {"m": 64, "n": 128, "k": 128, "e": 128}
    assert plan.notes == ("made by hand",)


def test_a_file_may_be_nothing_but_stages() -> None:
    plan = from_text("kernel a: round down act up", chain())
    assert [k.stages for k in plan.kernels] == [("up", "act", "down", "round")]
    assert plan.kernels[0].grid or plan.kernels[0].loops


def test_what_is_left_out_is_chosen_the_cheapest_way() -> None:
    open_plan = from_text("kernel a: up act\nkernel b: down round", chain())
    for grid, loops in (("m", "k"), ("k", "m"), ("m k", "")):
        try:
            fixed = from_text(f"kernel a: up act\n  grid {grid}\n  loops {loops}\nkernel b: down round", chain())
        except FusionError:
            continue
        assert cost(open_plan) <= cost(fixed)


def cost(plan: Plan) -> float:
    from fusion.output.summary import plan_us

    return plan_us(plan)


def test_a_tile_larger_than_its_dim_shrinks_and_a_dim_of_one_tile_is_in_no_grid() -> None:
    plan = from_text(WHOLE.replace("grid m", "grid m n"), chain(m=32, k=64))
    assert dict(plan.tiles) == {"m": 32, "n": 128, "k": 64, "e": 128}
    assert plan.kernels[0].grid == plan.kernels[0].loops == ()


def test_comments_and_stages_lines() -> None:
    text = "# a plan\nkernel a: up  # the first\n  stages act\n  stages down round\n"
    assert from_text(text, chain()).kernels[0].stages == ("up", "act", "down", "round")


def test_a_place_line_picks_the_way_that_puts_the_value_there() -> None:
    text = "kernel a: up\n  place u MEMORY\nkernel b: act down round"
    assert from_text(text.replace("MEMORY", "atomic"), chain()).kernels[0].grid.count("k")
    assert "k" not in from_text(text.replace("MEMORY", "global"), chain()).kernels[0].grid


@pytest.mark.parametrize("count", COUNTS)
def test_variants_load_for_the_measured_shape_and_a_small_one(count: int) -> None:
    for graph in (small(), gqa_sink_bwd(batch=1, heads=64, groups=8, seq_len=4096, dim=128, window=128)):
        plan = load(count, graph)
        assert len(plan.kernels) == count
        assert from_text(to_text(plan), graph) == plan


def test_planned_text_and_json_come_back() -> None:
    graph = chain()
    planner = Planner(graph)
    for target in (1, 2, 3, 4):
        plan = planner.plan(target, 1)[0].plan
        assert from_text(to_text(plan), graph) == plan
        assert from_json(to_json(plan)) == plan


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(stage_graphs(max_stages=4))
def test_plans_of_random_graphs_come_back(graph: StageGraph) -> None:
    try:
        plan = Planner(graph).plan(len(Planner(graph).atoms), 1)[0].plan
    except FusionError:
        return
    assert from_text(to_text(plan), graph) == plan
    assert from_json(to_json(plan)) == plan


def test_str_of_a_plan_is_its_text() -> None:
    plan = load(2)
    assert str(plan) == to_text(plan)


MISTAKES = {
    "stage": ("kernel a: up act dwn round", 1, "no stage 'dwn' in chain", "did you mean down"),
    "stage twice": ("kernel a: up act\nkernel b: act down round", 2, "stage act is already in line 1 (rule every-stage-runs-once)", ""),
    "stage missing": ("kernel a: up act down", 0, "stages left out: round (rule every-stage-runs-once)", "put each into a kernel"),
    "operator": ("plan other\nkernel a: up act down round", 0, "this is a plan for other, not for chain", ""),
    "dim": ("kernel a: up act down round\n  grid mm", 1, "kernel a: no dim 'mm'", "did you mean m"),
    "tile": ("tiles m=60\nkernel a: up act down round", 1, "tile m=60 is no multiple of 16", "use 64"),
    "tile word": ("tiles m64\nkernel a: up act down round", 1, "tile 'm64'", "write it like q=64"),
    "keyword": ("kernel a: up act down round\n  lops k", 2, "cannot read 'lops k'", "did you mean loops"),
    "outside": ("krnel a: up", 1, "cannot read 'krnel a: up'", "did you mean kernel"),
    "indent": ("  grid m\nkernel a: up act down round", 1, "indented, but no kernel is open", "start one"),
    "kernel twice": ("kernel a: up act\nkernel a: down round", 2, "kernel a is defined twice", ""),
    "empty": ("plan chain", 0, "no kernel in this plan", "start one"),
    "order": ("kernel b: down round\nkernel a: up act", 1, "down: runs before act, whose result it reads (rule kernels-are-acyclic)", ""),
    "handoff": (
        "kernel a: up act\n  workspace uu slots 1\nkernel b: down round",
        1,
        "line 2 hands it over, but it does not go",
        "did you mean u?",
    ),
    "handoff form": ("kernel a: up act down round\n  workspace u slot 1", 2, "cannot read 'workspace u slot 1'", "[slots 1|each]"),
    "name": ("kernel a: up act\n  workspace u as scores\nkernel b: down round", 1, "rule workspaces-are-named", ""),
    "threads": ("kernel a: up act down round\n  threads 3", 2, "threads '3'", "1 or 2"),
    "persistent": ("kernel a: up act down round\n  persistent yes", 2, "persistent 'yes'", "persistent no"),
    "memory": ("kernel a: up act down round\n  place u l2", 2, "place 'u l2'", "known: atomic, global, l0c, l1"),
    "place": ("kernel a: up act\n  place u ub\nkernel b: down round", 1, "u: line 2 places it in ub, but it lives in", "rule as-written"),
    "spread": ("tiles m=64 k=64\nkernel a: up act\n  grid m\n  loops\nkernel b: down round", 2, "k: has 8 tiles and is neither", ""),
    "rule": ("tiles k=64\nkernel a: up act\n  grid m k\nkernel b: down round", 2, "(rule grid-sum-is-final)", ""),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_with_its_line(name: str) -> None:
    text, line, what, remedy = MISTAKES[name]
    with pytest.raises(FusionError) as caught:
        from_text(text, chain(), "my.plan")
    told = str(caught.value)
    assert what in told
    assert remedy in told
    assert told.startswith(f"my.plan:{line}:" if line else "my.plan: ")


def test_what_does_not_fit_is_told_with_the_numbers() -> None:
    with pytest.raises(FusionError, match=r"kernel a: .* B of UB, which has 1000 B .*rule memory-fits"):
        from_text("kernel a: up act down round", chain(), limits=Limits(ub=1000))


def test_without_check_an_illegal_kernel_is_kept_for_passes_to_repair() -> None:
    text = "kernel a: up act\n  workspace u as scores\nkernel b: down round"
    plan = from_text(text, chain(), check=False)
    assert plan.kernels[0].handoffs[0].name == "scores"


def test_json_that_is_no_plan_is_refused() -> None:
    for text in ("{", "[]", '{"graph": 1}', to_json(load(2)).replace('"stages"', '"stags"')):
        with pytest.raises(FusionError, match="not a plan in JSON"):
            from_json(text)


def test_json_that_breaks_a_rule_of_plans_is_refused() -> None:
    with pytest.raises(FusionError, match="rule every-stage-runs-once"):
        from_json(to_json(from_text("kernel a: up act\nkernel b: down round", chain())).replace('"act"\n', '"up"\n'))
