"""compensate-gemm: same golden, smaller error as declared, on graphs and in plans."""

from __future__ import annotations

import pytest
import torch

from fusion.graph import Graph, StageGraph, cast, contract, exp
from fusion.graph.evaluate import evaluate
from fusion.passes import parse_pipeline, run_graph_pipeline, run_pipeline
from fusion.passes.check import plan_problems
from fusion.plan.planner import Planner
from kernels.attention_sink import gqa_sink_bwd
from passes.compensate_gemm import CompensateGemm
from tests.inputs import random_inputs
from tests.passes.small import backward, fused, kernel, outline, plan, stage_text


def compensated(graph: StageGraph, options: str = "") -> StageGraph:
    return run_graph_pipeline(graph, parse_pipeline(f"compensate-gemm{options}")).artefact


def rounded(m: int, n: int, k: int, dtype: str = "float16") -> StageGraph:
    """C = r(exp(A)) B."""
    g = Graph("rounded")
    for d, size in (("m", m), ("n", n), ("k", k)):
        g.dim(d, size)
    A, B = g.input("A", "m k", "float32"), g.input("B", "k n", dtype)
    with g.vector("exponent"):
        a = g.let("a", cast(exp(A), dtype))
    with g.cube("mul"):
        C = g.let("C", contract(a, B, over="k"))
    g.output(C)
    return g.build()


def errors(graph: StageGraph, golden: dict[str, torch.Tensor], inputs: dict[str, torch.Tensor]) -> dict[str, float]:
    """Largest error of the evaluation as declared, before the result itself is rounded."""
    return {n: (v.double() - golden[n]).abs().max().item() for n, v in evaluate(graph, inputs, "declared").items()}


def test_before_and_after() -> None:
    after = compensated(backward(), "{stages=dk}")
    assert stage_text(after, "ds", "dk") == (
        "vector ds:\n"
        "  ds_cast__2 : float32[q k] = cast(p_cast) as float32\n"
        "  ds_cast__1 : float32[q k] = mul(ds_cast__2, dp)\n"
        "  ds_cast : float16[q k] = cast(ds_cast__1) as float16\n"
        "  ds_cast_back : float32[q k] = cast(ds_cast) as float32\n"
        "  ds_cast_delta : float32[q k] = sub(ds_cast__1, ds_cast_back)\n"
        "  ds_cast_err : float16[q k] = cast(ds_cast_delta) as float16\n"
        "cube dk:\n"
        "  dk_acc_main : float32[k d] = contract(ds_cast, Q) over q\n"
        "  dk_acc_fix : float32[k d] = contract(ds_cast_err, Q) over q\n"
        "  dk_acc : float32[k d] = add(dk_acc_main, dk_acc_fix)"
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_golden_is_the_same_and_the_declared_error_smaller(dtype: str) -> None:
    before = rounded(64, 32, 256, dtype)
    after = compensated(before)
    inputs = {n: t.to(getattr(torch, dtype) if n == "B" else torch.float32).double() for n, t in random_inputs(before).items()}
    golden = evaluate(before, inputs)
    assert torch.equal(evaluate(after, inputs)["C"], golden["C"])
    assert errors(after, golden, inputs)["C"] < errors(before, golden, inputs)["C"] / 50


def test_attention_backward_keeps_its_golden() -> None:
    graph = gqa_sink_bwd(heads=2, groups=2, seq_len=48, dim=16, window=20)
    inputs = random_inputs(graph)
    after = evaluate(compensated(graph), inputs, scan_step=16)
    for name, want in evaluate(graph, inputs, scan_step=16).items():
        assert torch.equal(after[name], want), name


def test_doing_it_twice_changes_nothing() -> None:
    once = compensated(backward())
    result = CompensateGemm().run(once)
    assert (result.modified, result.refusals) == (False, ())
    rest = compensated(compensated(backward(), "{values=dv_acc}"))
    assert str(rest) == str(once)


def test_both_operands_rounded() -> None:
    g = Graph("both")
    for d in "mnk":
        g.dim(d, 16)
    A, B = g.input("A", "m k", "float32"), g.input("B", "k n", "float32")
    with g.vector("round_a"):
        a = g.let("a", cast(A, "float16"))
    with g.vector("round_b"):
        b = g.let("b", cast(B, "float16"))
    with g.cube("mul"):
        C = g.let("C", contract(a, b, over="k"))
    g.output(C)
    after = compensated(g.build())
    assert stage_text(after, "mul") == (
        "cube mul:\n"
        "  C_main : float32[m n] = contract(a, b) over k\n"
        "  C_fix : float32[m n] = contract(a_err, b) over k\n"
        "  C_part : float32[m n] = add(C_main, C_fix)\n"
        "  C_fix_2 : float32[m n] = contract(a, b_err) over k\n"
        "  C : float32[m n] = add(C_part, C_fix_2)"
    )


def test_operands_that_come_rounded_are_refused_if_asked_for() -> None:
    result = CompensateGemm(stages="qk").run(backward())
    assert [str(r) for r in result.refusals] == [
        "qk: s: no Vector stage rounds an operand from float32, operands: Q (float16, input), K (float16, input) (rule operand-is-rounded)"
    ]


def test_in_a_plan_the_errors_get_handoffs() -> None:
    result = run_pipeline(fused(), parse_pipeline("retain-in-ub,compensate-gemm"))
    assert outline(result.artefact) == (
        "k1: qk dp softmax dv ds dk cast_dv cast_dk | grid k | loops q\n"
        "  s cube->vector workspace_s slots 1\n"
        "  dp cube->vector workspace_dp slots 1\n"
        "  p_cast vector->cube workspace_p_cast slots 1\n"
        "  p_cast_err vector->cube workspace_p_cast_err slots 1\n"
        "  ds_cast vector->cube workspace_ds_cast slots 1\n"
        "  ds_cast_err vector->cube workspace_ds_cast_err slots 1\n"
        "host: "
    )
    assert plan_problems(result.artefact) == ()


def test_what_does_not_fit_is_refused_with_numbers_or_gets_smaller_tiles() -> None:
    tight = plan(rounded(512, 64, 256), kernel("k1", "exponent mul", "m"), tiles=(("m", 128), ("n", 64), ("k", 256)))
    assert plan_problems(tight) == ()
    result = run_pipeline(tight, parse_pipeline("compensate-gemm"))
    assert result.artefact == tight
    ((_, refusal),) = result.refusals
    assert refusal.rule == "memory-fits" and "B of UB, which has 196352 B" in refusal.why
    smaller = run_pipeline(tight, parse_pipeline("compensate-gemm{retile=true}")).artefact
    assert smaller.tiles != tight.tiles and plan_problems(smaller) == ()


def test_blocks_are_no_longer_persistent_where_the_error_has_no_way_back() -> None:
    """Y = (X A) B, one product a kernel: tile after tile goes from Cube to Vector on one slot, and nothing comes back."""
    g = Graph("chain")
    for name, size in {"t": 2048, "a": 512, "b": 512, "e": 512}.items():
        g.dim(name, size, tiles=(64,))
    X, A, B = g.input("X", "t a", "float16"), g.input("A", "a b", "float16"), g.input("B", "b e", "float16")
    with g.cube("one"):
        x = g.let("x", contract(X, A, over="a"))
    with g.vector("round"):
        rounded = g.let("rounded", cast(x, "float16"))
    with g.cube("two"):
        g.output(g.let("y", contract(rounded, B, over="b")))
    found = Planner(g.build()).plan(2)[0].plan
    assert [(k.stages, k.persistent) for k in found.kernels] == [(("one", "round"), True), (("two",), True)]
    result = run_pipeline(found, parse_pipeline("compensate-gemm"))
    assert [k.persistent for k in result.artefact.kernels] == [False, True] and not result.refusals
    assert not plan_problems(result.artefact)
