"""Each plan pass on a small plan: before -> after, what it refuses and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fusion.errors import FusionError
from fusion.graph import Graph, StageGraph, cast, contract, exp, total
from fusion.graph.evaluate import evaluate
from fusion.passes import PipelineResult, parse_pipeline, run_pipeline
from fusion.passes.check import plan_problems
from fusion.plan.types import Plan
from tests.inputs import assert_close, random_inputs
from tests.passes.small import backward, fused, kernel, outline, plan, stage_text


def run(before: Plan, text: str) -> PipelineResult[Plan]:
    return run_pipeline(before, parse_pipeline(text))


def refusals(result: PipelineResult[Plan]) -> list[str]:
    return [str(r) for _, r in result.refusals]


def apart() -> Plan:
    kernels = (
        kernel("k1", "qk softmax", "k q"),
        kernel("k2", "dv cast_dv", "k", "q"),
        kernel("k3", "dp ds dk", "k", "q"),
        kernel("k4", "cast_dk", "k"),
    )
    return plan(backward(), *kernels)


# ---- name-workspaces


def test_names_get_the_word_that_the_compiler_looks_for() -> None:
    before = fused()
    k = before.kernels[0]
    names = {"s": "scores", "dp": "workspace_scores", "p_cast": "workspace_p", "ds_cast": "scores"}
    bad = replace(before, kernels=(replace(k, handoffs=tuple(replace(h, name=names[h.value]) for h in k.handoffs)),))
    after = run(bad, "name-workspaces").artefact
    have = {h.value: h.name for h in after.kernels[0].handoffs}
    assert have == {"s": "workspace_scores_2", "dp": "workspace_scores", "p_cast": "workspace_p", "ds_cast": "workspace_scores_3"}


# ---- retain-in-ub


def test_p_is_read_from_ub() -> None:
    before = fused()
    after = run(before, "retain-in-ub").artefact
    assert stage_text(before.graph, "ds") == (
        "vector ds:\n"
        "  ds_cast__2 : float32[q k] = cast(p_cast) as float32\n"
        "  ds_cast__1 : float32[q k] = mul(ds_cast__2, dp)\n"
        "  ds_cast : float16[q k] = cast(ds_cast__1) as float16"
    )
    assert stage_text(after.graph, "ds") == (
        "vector ds:\n  ds_cast__1 : float32[q k] = mul(p, dp)\n  ds_cast : float16[q k] = cast(ds_cast__1) as float16"
    )
    assert (before.kernels[0].place("p"), after.kernels[0].place("p")) == (None, "ub")
    assert outline(after) == outline(before)
    inputs = random_inputs(before.graph)
    for name, want in evaluate(before.graph, inputs).items():
        assert_close(evaluate(after.graph, inputs)[name], want, 1e-12)


def test_p_cannot_be_kept_across_kernels() -> None:
    result = run(apart(), "retain-in-ub")
    assert result.modified == ()
    assert refusals(result) == ["ds: p is made by stage softmax in k1 and needed in k3: UB does not outlive a kernel (rule same-kernel)"]


def test_a_widened_value_that_others_read_stays_as_a_copy() -> None:
    g = Graph("copied")
    for d in "qkd":
        g.dim(d, 64)
    A, B = g.input("A", "q k", "float32"), g.input("B", "k d", "float16")
    with g.vector("round"):
        x = g.let("x", exp(A))
        r = g.let("r", cast(x, "float16"))
    with g.cube("mul"):
        c = g.let("c", contract(r, B, over="k"))
    with g.vector("widen"):
        wide = g.let("wide", cast(r, "float32"))
    g.output(c)
    g.output(wide)
    after = run(plan(g.build(), kernel("k1", "round mul widen")), "retain-in-ub").artefact
    assert stage_text(after.graph, "widen") == "vector widen:\n  wide : float32[q k] = copy(x)"


def test_an_unknown_value_gets_the_closest() -> None:
    with pytest.raises(FusionError, match=r"no value that is read back: 'p_cas'\n  did you mean p_cast"):
        run(fused(), "retain-in-ub{values=p_cas}")


# ---- accumulate-atomically


def test_sums_are_spread_over_blocks() -> None:
    after = run(apart(), "accumulate-atomically{values=dk_acc+dv_acc}").artefact
    assert outline(after) == (
        "k1: qk softmax | grid k q | loops \n"
        "  s cube->vector workspace_s slots 1\n"
        "k2: dv | grid q k | loops \n"
        "k3: dp ds dk | grid q k | loops \n"
        "  dp cube->vector workspace_dp slots 1\n"
        "  ds_cast vector->cube workspace_ds_cast slots 1\n"
        "host: cast_dv cast_dk"
    )
    assert [k.place(v) for k, v in zip(after.kernels[1:], ("dv_acc", "dk_acc"), strict=True)] == ["atomic", "atomic"]
    assert after.graph == apart().graph


def test_what_becomes_atomic_with_it_is_cast_on_the_host_too() -> None:
    after = run(fused(), "accumulate-atomically{values=dv_acc}").artefact
    assert outline(after).splitlines()[0] == "k1: qk dp softmax dv ds dk | grid q k | loops "
    assert after.host_stages == ("cast_dv", "cast_dk")


def test_a_later_kernel_may_keep_the_cast() -> None:
    after = run(apart(), "accumulate-atomically{values=dk_acc,host=false}").artefact
    assert [k.name for k in after.kernels] == ["k1", "k2", "k3", "k4"]
    assert after.host_stages == ()


def test_unasked_only_what_is_faster() -> None:
    result = run(fused(), "accumulate-atomically")
    assert result.modified == ()
    assert len(refusals(result)) == 2
    assert all("(rule worth-it)" in r and "us, with a loop" in r for r in refusals(result))


def row_sum() -> StageGraph:
    """y = exp(x) / sum exp(x)."""
    g = Graph("row_sum")
    g.dim("r", 64)
    g.dim("c", 256)
    x = g.input("x", "r c", "float32")
    with g.vector("add"):
        e = g.let("e", exp(x))
        t = g.let("t", total(e, over="c"))
    with g.vector("largest"):
        u = g.let("u", total(exp(t * 1.0), over="r"))
    g.output(u)
    return g.build()


def test_a_sum_that_the_kernel_reads_stays() -> None:
    before = plan(row_sum(), kernel("k1", "add", "r", "c"), kernel("k2", "largest"), tiles=(("r", 32), ("c", 64)))
    merged = replace(before, kernels=(replace(before.kernels[0], stages=("add", "largest")),))
    result = run_pipeline(merged, parse_pipeline("accumulate-atomically{values=t}"), verify=False)
    assert refusals(result) == [
        "k1.largest: reads t, which is whole only when all blocks have added to it: after the launch (rule grid-sum-is-final)"
    ]


# ---- free-handoff


def one_way() -> Plan:
    """A Cube that may run ahead of the Vector cores: nothing comes back."""
    g = Graph("one_way")
    for name, size in (("q", 64), ("k", 2048), ("d", 64)):
        g.dim(name, size)
    Q, K = g.input("Q", "q d", "float16"), g.input("K", "k d", "float16")
    with g.cube("qk"):
        s = g.let("s", contract(Q, K, over="d"))
    with g.vector("sum"):
        r = g.let("r", total(exp(s), over="k"))
    g.output(r)
    safe = plan(g.build(), kernel("k1", "qk sum", "", "k"))
    k = safe.kernels[0]
    return replace(safe, kernels=(replace(k, handoffs=tuple(replace(h, slots=1, free=False) for h in k.handoffs)),))


def test_a_one_way_handoff_gets_a_way_back() -> None:
    before = one_way()
    assert [r.rule for r in plan_problems(before)] == ["single-slots-are-ordered"]
    result = run(before, "free-handoff")
    assert outline(result.artefact).splitlines()[1] == "  s cube->vector workspace_s slots 1 free"
    assert plan_problems(result.artefact) == ()


def test_a_flooded_flag_gets_one_too() -> None:
    before = one_way()
    k = before.kernels[0]
    flooded = replace(before, kernels=(replace(k, handoffs=(replace(k.handoffs[0], slots=0),)),))
    assert [r.rule for r in plan_problems(flooded)] == ["slots-do-not-flood"]
    assert plan_problems(run(flooded, "free-handoff").artefact) == ()


def chains(count: int) -> Plan:
    """As many one-way handoffs in a loop."""
    g = Graph("chains")
    for name, size in (("q", 32), ("k", 1024), ("d", 32)):
        g.dim(name, size)
    parts = []
    Q, K = g.input("Q", "q d", "float16"), g.input("K", "k d", "float16")
    for i in range(count):
        with g.cube(f"qk{i}"):
            s = g.let(f"s{i}", contract(Q, K, over="d"))
        with g.vector(f"sum{i}"):
            parts.append(g.let(f"r{i}", total(exp(s), over="k")))
    for r in parts:
        g.output(r)
    stages = " ".join(f"qk{i} sum{i}" for i in range(count))
    safe = plan(g.build(), kernel("k1", stages, "", "k"), tiles=(("q", 32), ("k", 32), ("d", 32)))
    k = safe.kernels[0]
    return replace(safe, kernels=(replace(k, handoffs=tuple(replace(h, slots=1, free=False) for h in k.handoffs)),))


def test_flags_may_run_out() -> None:
    result = run(chains(6), "free-handoff")
    assert sum(h.free for h in result.artefact.kernels[0].handoffs) == 5
    assert refusals(result) == [
        "k1.s5: freeing workspace_s5 takes 12 cross-core flags, the hardware has 11: split the kernel (rule flags-fit)"
    ]


def test_only_some_are_freed() -> None:
    after = run(chains(3), "free-handoff{values=s0+s2}").artefact
    assert [h.value for h in after.kernels[0].handoffs if h.free] == ["s0", "s2"]


# ---- split-oversize


def test_a_kernel_too_large_becomes_several() -> None:
    big = plan(
        backward(512, 512, 256),
        kernel("k1", "qk dp softmax dv ds dk cast_dv cast_dk", "k", "q"),
        tiles=(("q", 128), ("k", 128), ("d", 256)),
    )
    assert [r.rule for r in plan_problems(big)] == ["memory-fits"]
    after = run(big, "split-oversize").artefact
    assert plan_problems(after) == ()
    assert [k.name for k in after.kernels] == ["k1_part1", "k1_part2", "k1_part3"]
    assert all(k.placements for k in after.kernels)
    assert sorted(s for k in after.kernels for s in k.stages) == sorted(big.kernels[0].stages)
    assert refusals(run(big, "split-oversize{most=2}")) == [
        "k1: does not fit in the 2 kernels that the option allows; it has 8 stages that can be apart (rule most)"
    ]


def test_a_stage_too_large_is_refused_with_the_bytes() -> None:
    big = plan(
        backward(512, 512, 512),
        kernel("k1", "qk dp softmax dv ds dk cast_dv cast_dk", "k", "q"),
        tiles=(("q", 128), ("k", 128), ("d", 512)),
    )
    result = run(big, "split-oversize")
    assert result.modified == ()
    assert "dv: dv_acc: tile 512 of d takes 131072 B of L0A/L0B, which has 65536 B (rule cube-tiles-fit)" in refusals(result)
