"""The host program: what is allocated, launched, computed and returned, and that the generated wrapper does the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from fusion.emit.emit import emit
from fusion.emit.host import ON_HOST, host_program
from fusion.emit.hostprogram import Allocate, Apply, Launch, SumLanes
from fusion.emit.hostrun import run_host
from fusion.emit.program import KernelProgram, Program
from fusion.emit.wrapper import HOST_CODE
from fusion.errors import FusionError
from fusion.graph import Graph, StageGraph, cast, contract, relu, total
from fusion.graph.evaluate import evaluate_all, external
from fusion.graph.ops import OPS
from fusion.plan.text import from_text
from tests.emit.fake import golden_launch
from tests.inputs import random_inputs

Namespace = dict[str, Callable[..., object]]


def product(m: int = 64, n: int = 64, k: int = 64) -> StageGraph:
    """C = half(relu(A B)), with the rounding apart."""
    g = Graph("product")
    for name, size in (("m", m), ("n", n), ("k", k)):
        g.dim(name, size)
    A = g.input("A", "m k", "float16")
    B = g.input("B", "k n", "float16")
    with g.cube("mul"):
        acc = g.let("acc", contract(A, B, over="k"))
    with g.vector("round"):
        C = g.let("C", cast(relu(acc), "float16"))
    g.output(C, "m n")
    return g.build()


def backward(m: int = 64, n: int = 64) -> StageGraph:
    """Y = half(2 X); dX = half(2 dY) and d_w = sum over rows of dY: a forward and a backward."""
    g = Graph("double_bwd")
    g.dim("h", 4)
    g.dim("m", m)
    g.dim("n", n)
    X = g.input("X", "h m n", "float16")
    w = g.input("w", "h", "float32")
    dY = g.input("dY", "h m n", "float16", after="Y")
    with g.vector("scale"):
        Y = g.let("Y", cast(cast(X, "float32") * w, "float16"))
    with g.vector("unscale"):
        dX = g.let("dX", cast(cast(dY, "float32") * w, "float16"))
    g.output(Y, "h m n")
    g.output(dX, "h m n")
    return g.build()


TWO = "kernel k1: mul\nhost: round\n"
SPLIT = "kernel k1: scale\nkernel k2: unscale\n"


def run(program: Program) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Every output (have, want) with kernels that do what the graph says."""
    graph = program.plan.graph
    inputs = random_inputs(graph)
    env = evaluate_all(graph, inputs, "declared")
    have = run_host(program, inputs, golden_launch(program.plan, env))
    return {v.name: (have[v.name], external(graph, v, env)) for v in graph.outputs}


def assert_agrees(program: Program) -> None:
    for name, (have, want) in run(program).items():
        assert have.shape == want.shape, name
        torch.testing.assert_close(have.double(), want.double(), rtol=2e-3, atol=2e-3)


def test_a_host_stage_computes_what_the_graph_says() -> None:
    program = emit(from_text(TWO, product()))
    assert [s.fn for s in program.host.steps if isinstance(s, Apply)] == ["relu", "cast"]
    assert_agrees(program)


@pytest.mark.parametrize("sizes", [(256, 384, 64), (200, 328, 64)])
def test_a_host_stage_reads_what_is_stored_tile_by_tile(sizes: tuple[int, int, int]) -> None:
    program = emit(from_text("tiles m=64 n=64\n" + TWO, product(*sizes)))
    assert next(p for p in program.kernels[0].params if p.value == "acc").shape[-2:] == (64, 64)
    assert_agrees(program)


def test_an_input_after_an_output_starts_a_phase() -> None:
    host = emit(from_text(SPLIT, backward())).host
    assert [(p.name, p.inputs, [r.value for r in p.results]) for p in host.phases] == [
        ("forward", ("X", "w"), ["Y"]),
        ("backward", ("dY",), ["dX"]),
    ]
    assert host.phases[0].saved == ("w_lanes",)
    assert host.host_syncs == 1


def test_an_input_without_tiled_dims_comes_in_lanes() -> None:
    program = emit(from_text(SPLIT, backward()))
    lanes = next(p for p in program.kernels[0].params if p.value == "w")
    assert lanes.shape == (4, 128)
    assert_agrees(program)


@pytest.mark.parametrize("count", [9, 6, 5, 4, 2])
def test_variants_of_gqa_sink_bwd(count: int, variant: Callable[[int], Program]) -> None:
    program = variant(count)
    assert [p.name for p in program.host.phases] == ["forward", "backward"]
    assert sum(isinstance(s, Launch) for s in program.host.steps) == count
    assert_agrees(program)


def test_atomic_sums_start_from_zero(variant: Callable[[int], Program]) -> None:
    host = variant(2).host
    zeroed = {s.name for s in host.steps if isinstance(s, Allocate) and s.zero}
    assert {"dk_acc", "dv_acc"} <= zeroed
    assert any(isinstance(s, SumLanes) for s in host.steps)


def wrapper(program: Program, launch: Callable[[KernelProgram, dict[str, torch.Tensor]], None]) -> Namespace:
    """The generated module with its kernels replaced."""
    space: Namespace = {}
    exec(compile(program.wrapper, "host.py", "exec"), {"__file__": "host.py", "__name__": "host"} | space, space)
    scope = {"__file__": "/nowhere/host.py", "__name__": "host"}
    exec(compile(program.wrapper, "host.py", "exec"), scope)
    by_name = {k.name: k for k in program.kernels}

    def kernel(name: str) -> Callable[..., None]:
        k = by_name[name]
        return lambda *args: launch(k, dict(zip([p.name for p in k.params], args, strict=True)))

    scope["_kernel"] = kernel
    return scope


def rounded(graph: StageGraph) -> dict[str, torch.Tensor]:
    found = random_inputs(graph)
    return {v.name: found[v.name].to(getattr(torch, v.dtype)) for v in graph.inputs}


def test_the_wrapper_does_what_run_host_does(variant: Callable[[int], Program]) -> None:
    program = variant(2)
    graph = program.plan.graph
    inputs = rounded(graph)
    env = evaluate_all(graph, inputs, "declared")
    launch = golden_launch(program.plan, env)
    want = run_host(program, inputs, launch)
    space = wrapper(program, launch)
    first = [inputs[i.value] for i in program.host.inputs if not i.after]
    results, saved = space["forward"](*first)
    gradients = space["backward"](saved, inputs["dO"])
    names = [r.value for p in program.host.phases for r in p.results]
    for name, have in zip(names, (*results, *gradients), strict=True):
        torch.testing.assert_close(have, want[name], equal_nan=True)


def test_the_wrapper_is_an_autograd_function_where_gradients_fit(variant: Callable[[int], Program]) -> None:
    program = variant(4)
    graph = program.plan.graph
    inputs = rounded(graph)
    env = evaluate_all(graph, inputs, "declared")
    space = wrapper(program, golden_launch(program.plan, env))
    leaves = {i.value: inputs[i.value].requires_grad_() for i in program.host.inputs if not i.after}
    out, lse = space["GqaSink"].apply(*leaves.values())
    assert not lse.requires_grad
    out.backward(inputs["dO"])
    torch.testing.assert_close(leaves["Q"].grad.double(), external(graph, graph.value("dQ"), env).double(), rtol=2e-3, atol=2e-3)


def test_the_wrapper_refuses_wrong_shapes_and_dtypes() -> None:
    program = emit(from_text(TWO, product()))
    space = wrapper(program, lambda k, t: None)
    good = torch.zeros(64, 64, dtype=torch.float16)
    with pytest.raises(ValueError, match=r"B is \(64, 32\)"):
        space["product"](good, good[:, :32])
    with pytest.raises(ValueError, match="float32"):
        space["product"](good.float(), good)


def test_one_phase_is_called_like_the_operator() -> None:
    program = emit(from_text("kernel k1: mul round", product()))
    assert "def product(A, B):" in program.wrapper
    assert "autograd" not in program.wrapper


def test_a_missing_input_and_a_wrong_shape_are_named() -> None:
    program = emit(from_text(TWO, product()))
    with pytest.raises(FusionError, match="input B is missing"):
        run_host(program, {"A": torch.zeros(64, 64)}, lambda k, t: None)
    with pytest.raises(FusionError, match=r"input A has shape \(3, 4\), expected \(64, 64\)"):
        run_host(program, {"A": torch.zeros(3, 4), "B": torch.zeros(64, 64)}, lambda k, t: None)


def test_a_contraction_does_not_run_on_the_host() -> None:
    g = Graph("twice")
    for name in "mnk":
        g.dim(name, 64)
    A, B = g.input("A", "m k", "float16"), g.input("B", "k n", "float16")
    with g.vector("copy"):
        A2 = g.let("A2", cast(cast(A, "float32"), "float16"))
    with g.cube("mul"):
        C = g.let("C", contract(A2, B, over="k"))
    g.output(C)
    plan = from_text("kernel k1: copy\nhost: mul\n", g.build())
    with pytest.raises(FusionError, match="host stage mul: C = contract cannot run on the host"):
        emit(plan)


def test_a_host_stage_may_reduce() -> None:
    g = Graph("rows")
    g.dim("h", 4)
    g.dim("m", 64)
    g.dim("n", 64)
    X = g.input("X", "h m n", "float32")
    with g.vector("square"):
        Y = g.let("Y", X * X)
    with g.vector("add"):
        s = g.let("s", total(Y, over="m"))
    g.output(Y)
    g.output(s, "n h")
    assert_agrees(emit(from_text("kernel k1: square\nhost: add\n", g.build())))


def test_every_operation_of_host_stages_has_source() -> None:
    assert set(HOST_CODE) == {fn for fn, spec in OPS.items() if spec.form in ON_HOST and fn != "where"}


def test_host_program_takes_plan_and_kernels() -> None:
    program = emit(from_text(TWO, product()))
    assert host_program(program.plan, program.kernels) == program.host
