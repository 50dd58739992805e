"""Every rule has a kernel or plan that breaks it, and says where and with which numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from fusion.graph import (
    Expr,
    Graph,
    Op,
    StageGraph,
    cast,
    contract,
    expand,
    gather,
    largest,
    part,
    scatter_add,
    topk,
    total,
    where,
)
from fusion.plan.device import Limits
from fusion.plan.rules import KERNEL_RULES, PLAN_RULES, STRUCTURE_RULES, kernel_refusals, structure_refusals
from fusion.plan.structure import Structure
from fusion.plan.tiling import Tiling, tilings
from fusion.plan.types import Handoff, Kernel, Plan
from tests.graph.small import softmax_sum
from tests.passes.small import backward, fused
from tests.plan import variants

Broken = list[tuple[str, str, str]]  # rule, where, why


def structure(graph: StageGraph, stages: str, grid: str = "", loops: str = "", tiles: dict[str, int] | None = None) -> Structure:
    tiling = Tiling(graph, tuple(tiles.items())) if tiles else next(iter(tilings(graph)))
    chosen = tuple(stages.split()) or tuple(s.name for s in graph.stages)
    return Structure(tiling, chosen, tuple(grid.split()), tuple(loops.split()))


def broken(s: Structure) -> Broken:
    return [(r.rule, r.where, r.why) for r in structure_refusals(s)]


def elementwise(body: Callable[[Expr], Expr], dims: str = "q k", dtype: str = "float32") -> StageGraph:
    """One Vector stage `one` with y = body(x)."""
    g = Graph("small")
    for d in dims.split():
        g.dim(d, 128)
    x = g.input("x", dims, dtype)
    with g.vector("one"):
        y = g.let("y", body(x))
    g.output(y)
    return g.build()


# ---- structure


def after_the_host() -> Broken:
    return broken(structure(variants.small(), "fwd_qk fwd_softmax fwd_pv fwd_rescale fwd_finish dp", "n g q", "k"))


def kept_for_the_next_phase() -> Broken:
    g = Graph("phases")
    g.dim("q", 64)
    g.dim("d", 64)
    x = g.input("x", "q d", "float32")
    with g.vector("fwd"):
        half = g.let("half", x * 0.5)
        y = g.let("y", half + 1.0)
    dy = g.input("dy", "q d", "float32", after="y")
    with g.vector("bwd"):
        dx = g.let("dx", half * dy)
    g.output(y)
    g.output(dx)
    return broken(structure(g.build(), "fwd"))


def half_a_scan() -> Broken:
    return broken(structure(variants.small(), "fwd_qk fwd_softmax", "n g q", "k"))


def scattering() -> Broken:
    g = Graph("scattering")
    for d in "qkd":
        g.dim(d, 64)
    x = g.input("x", "q d", "float32")
    at = g.input("at", "q", "int32")
    with g.vector("scatter"):
        y = g.let("y", scatter_add(x, at, over="q", into="k"))
    g.output(y)
    return broken(structure(g.build(), "scatter", tiles={"k": 64, "d": 64}))


def ranked(dims: str = "q k t", dtype: str = "float32", tiles: tuple[int, ...] = (64, 64, 64)) -> Broken:
    """The largest of x along k, as t; dims are declared in the order given, of 64 elements each."""
    g = Graph("ranked")
    for d in dims.split():
        g.dim(d, 64)
    x = g.input("x", " ".join(d for d in dims.split() if d != "t"), dtype)
    with g.vector("rank"):
        y = g.let("y", topk(x, over="k", into="t"))
    g.output(y)
    return broken(structure(g.build(), "rank", tiles=dict(zip(dims.split(), tiles, strict=True))))


def test_whole_rows_are_ranked() -> None:
    assert ranked() == []


def bfloat_arithmetic() -> Broken:
    return broken(structure(elementwise(lambda x: x * 2.0, dtype="bfloat16"), "one", "q k"))


def three_tiled_dims() -> Broken:
    return broken(structure(elementwise(lambda x: x * 2.0, "a q k"), "one", "a q k", tiles={"a": 16, "q": 16, "k": 16}))


def scan_in_the_grid() -> Broken:
    return broken(structure(softmax_sum(128, 128), "step", "k", tiles={"q": 64, "k": 64}))


def sum_across_blocks_read() -> Broken:
    return broken(structure(backward(), "dk cast_dk", "q k", tiles={"q": 64, "k": 64, "d": 64}))


def maximum_across_blocks() -> Broken:
    return broken(structure(elementwise(lambda x: largest(x, over="k")), "one", "q k", tiles={"q": 64, "k": 64}))


def unfinished_sum() -> Broken:
    return broken(structure(elementwise(lambda x: x - total(x, over="k")), "one", "q", "k", tiles={"q": 64, "k": 64}))


def tile_of_one_iteration() -> Broken:
    graph = softmax_sum(128, 128)
    reads_the_step = Op("mul", "out", ("m_new__1", 1.0))
    stages = [replace(s, body=(reads_the_step,)) if s.name == "finish" else s for s in graph.stages]
    return broken(structure(graph.with_stages(stages), "step finish", "q", "k", tiles={"q": 64, "k": 64}))


def sum_over_one_of_two_loops() -> Broken:
    return broken(structure(backward(), "dk", "", "q k", tiles={"q": 64, "k": 64, "d": 64}))


def stored_by_many_blocks() -> Broken:
    return broken(structure(variants.small(), "preprocess qk", "n g q k"))


def product_of_a_product() -> Broken:
    g = Graph("chain")
    for d in "mnko":
        g.dim(d, 64)
    A, B, C = g.input("A", "m k", "float32"), g.input("B", "k n", "float32"), g.input("C", "n o", "float32")
    with g.cube("first"):
        x = g.let("x", contract(A, B, over="k"))
    with g.cube("second"):
        y = g.let("y", contract(x, C, over="n"))
    g.output(y)
    return broken(structure(g.build(), "first second"))


def crossing_in_and_after_the_scan() -> Broken:
    g = Graph("twice")
    g.dim("c", 4, step=1)
    for d in "tmv":
        g.dim(d, 64)
    X, W = g.input("X", "c t v", "float32"), g.input("W", "m t", "float32")
    with g.scan("c"):
        h = g.state("h", "t v", init=0.0)
        with g.vector("step"):
            new = g.let("new", h * 0.5 + total(X, over="c"))
        with g.cube("inside"):
            y = g.let("y", contract(W, new, over="t"))
        with g.vector("keep"):
            kept = g.let("kept", expand(y * 1.0, "c m v"))
        g.carry(h, new)
    with g.cube("after"):
        z = g.let("z", contract(W, new, over="t"))
    g.output(kept)
    g.output(z)
    return broken(structure(g.build(), "", "", "c"))


def stored_number() -> Broken:
    return broken(structure(elementwise(lambda x: largest(x, over="q k"), "b q k"), "one", "b"))


def number_over_a_loop() -> Broken:
    graph = elementwise(lambda x: x - total(x, over="q k"), "b q k")
    return broken(structure(graph, "one", "b q", "k", tiles={"q": 128, "k": 64}))


def number_of_numbers() -> Broken:
    graph = elementwise(lambda x: total(x, over="b"), "b c")
    return broken(structure(graph, "one", "", "", tiles={"q": 16}))


def part_of_what_is_made_here() -> Broken:
    g = Graph("parts")
    g.dim("q", 64)
    g.dim("u", 64)
    x = g.input("x", "q", "float32")
    with g.vector("make"):
        y = g.let("y", x * 2.0)
    with g.vector("use"):
        z = g.let("z", y - part(y, "q", "u"))
    g.output(z)
    return broken(structure(g.build(), "make use", tiles={"q": 64, "u": 64}))


def gathered(rows: str, source: str, index: str = "q", tiles: str = "q d") -> Broken:
    """Gathers from `source` along v by an index over `index`; `made` is made in the same kernel."""
    g = Graph("gathered")
    for d in ("b", "q", "v", "d"):
        g.dim(d, 64)
    W = g.input("W", source, "float16")
    ids = g.input("ids", index, "int32")
    with g.vector("make"):
        made = g.let("made", cast(W, "float16"))
    with g.vector("fetch"):
        y = g.let("y", gather(made if rows == "made" else W, ids, "v"))
    g.output(y)
    stages = "make fetch" if rows == "made" else "fetch"
    return broken(structure(g.build(), stages, tiles=dict.fromkeys(tiles.split(), 64)))


def vector_operand() -> Broken:
    g = Graph("vector")
    for d in "qkd":
        g.dim(d, 64)
    A = g.input("A", "q k d", "float16")
    B = g.input("B", "d", "float16")
    with g.cube("product"):
        y = g.let("y", contract(A, B, over="d"))
    g.output(y)
    return broken(structure(g.build(), "product", tiles={"q": 64, "k": 64, "d": 64}))


def narrow_rows() -> Broken:
    g = Graph("narrow")
    for d, size in (("q", 64), ("v", 64), ("d", 8)):
        g.dim(d, size)
    W = g.input("W", "v d", "float16")
    ids = g.input("ids", "q", "int32")
    with g.vector("fetch"):
        y = g.let("y", gather(W, ids, "v"))
    g.output(y)
    return broken(structure(g.build(), "fetch", tiles={"q": 64, "d": 8}))


def float32_product(first: str) -> Broken:
    g = Graph("product")
    for d in "mkn" if first == "m" else "kmn":
        g.dim(d, 64)
    A = g.input("A", "m k", "float32")
    B = g.input("B", "k n", "float32")
    with g.vector("scale"):
        a = g.let("a", A * 2.0)
    with g.cube("product"):
        y = g.let("y", contract(a, B, over="k"))
    g.output(y)
    return broken(structure(g.build(), ""))


def odd_fractal() -> Broken:
    return broken(structure(backward(), "qk", tiles={"q": 64, "k": 72, "d": 64}))


def stored_mask() -> Broken:
    g = Graph("mask")
    g.dim("q", 64)
    g.dim("d", 64)
    x = g.input("x", "q d", "float32")
    with g.vector("compare"):
        c = g.let("c", x > 0.0)
    with g.vector("choose"):
        y = g.let("y", where(c, x, 0.5))
    g.output(y)
    return broken(structure(g.build(), "compare")) + broken(structure(g.build(), "choose"))


def small_comparison() -> Broken:
    graph = elementwise(lambda x: where(x > 0.0, x, 0.5), "q")
    return broken(structure(graph, "one", "q", tiles={"q": 16}))


STRUCTURE: list[tuple[str, Callable[[], Broken], str, str]] = [
    ("exists-after", after_the_host, "dp", "dO exists only after O, which stage fwd_finish of the same kernel makes"),
    ("phases-share-outputs", kept_for_the_next_phase, "fwd", "half would have to be kept from this launch until the one of stage bwd"),
    ("scans-stay-whole", half_a_scan, "fwd_pv", "steps together with fwd_qk, fwd_softmax along k"),
    ("has-tile-code", scattering, "scatter", "scatter_add has no tile code yet"),
    ("has-tile-code", bfloat_arithmetic, "one", "mul of bfloat16: the Vector unit computes in float32 and float16"),
    ("tiles-are-matrices", three_tiled_dims, "one", "y works on 3 tiled dims (a q k), a tile has two"),
    ("scan-is-the-loop", scan_in_the_grid, "step", "k cannot be spread over blocks"),
    ("grid-sum-is-final", sum_across_blocks_read, "cast_dk", "dk_acc of stage dk is summed across blocks over q"),
    ("only-sums-cross-blocks", maximum_across_blocks, "one", "y = amax over k would have to be combined across blocks"),
    ("loop-sum-is-final", unfinished_sum, "one", "y__1 of stage one is complete only after the loop over k"),
    ("body-values-stay-in-body", tile_of_one_iteration, "finish", "m_new__1 of stage step holds one iteration of the loop over k"),
    ("sums-run-all-loops", sum_over_one_of_two_loops, "dk", "dk_acc is added up over q only, but the kernel loops over q k"),
    ("one-block-stores", stored_by_many_blocks, "preprocess", "delta would be stored by every block along k"),
    ("no-cube-to-cube", product_of_a_product, "second", "x comes from Cube stage first"),
    ("one-crossing-each", crossing_in_and_after_the_scan, "after", "new of stage step crosses units in every step along c"),
    ("numbers-meet-tiles", stored_number, "one", "y has no tiled dim (dims: b)"),
    ("numbers-meet-tiles", number_over_a_loop, "one", "y__1 is a single number that a loop or blocks add up"),
    ("numbers-meet-tiles", number_of_numbers, "one", "y = sum over b works on no tiled dim"),
    ("slices-are-loaded", part_of_what_is_made_here, "use", "is a part of y, which stage make of the same kernel makes"),
    ("tiles-are-matrices", vector_operand, "product", "y takes A with the tiled dims q k d, the Cube takes matrices"),
    ("rows-are-gathered", lambda: gathered("made", "v d"), "fetch", "rows of made, which stage make of the same kernel makes"),
    ("rows-are-gathered", lambda: gathered("W", "v d", "b q", "b q d"), "fetch", "y has the tiled dims b q d, of its index b q"),
    ("rows-are-gathered", lambda: gathered("W", "q v"), "fetch", "y has the tiled dims q, of its index q; copied are rows"),
    ("rows-are-gathered", lambda: gathered("W", "v d", "q", "q"), "fetch", "copied are rows: one tiled dim of the index, then one of W"),
    ("rows-are-blocks", narrow_rows, "fetch", "y: a row of 8 elements of d is not whole blocks of 32 bytes"),
    ("rows-are-ranked", lambda: ranked("k q t"), "rank", "y ranks along k, but rows of x are along q: declare dim k after q"),
    ("rows-are-ranked", lambda: ranked("t q k"), "rank", "y ranks along k, but rows of y are along q: declare dim t after q"),
    ("rows-are-ranked", lambda: ranked(tiles=(64, 32, 64)), "rank", "y ranks along k: needs all 64 of k in one tile, which has 32"),
    ("rows-are-ranked", lambda: ranked(dtype="int32"), "rank", "y ranks x of int32, the Vector unit sorts float32: cast it"),
    ("rows-are-blocks", lambda: ranked(tiles=(64, 64, 68)), "rank", "y: a row of 68 elements of t is not whole blocks of 32 bytes"),
    ("float32-is-not-transposed", lambda: float32_product("k"), "product", "y sums the float32 value a over k, the first dim of its tiles"),
    ("tiles-are-fractals", odd_fractal, "qk", "s: tile 72 of k is no multiple of 16"),
    ("masks-stay-in-ub", stored_mask, "compare", "c = lt would be stored"),
    ("masks-stay-in-ub", stored_mask, "choose", "y selects by c, which is no comparison of the same kernel"),
    ("comparisons-fill-repeats", small_comparison, "one", "compares a tile of 16 elements, which is no multiple of 64"),
]


@pytest.mark.parametrize(("rule", "case", "where_", "why"), STRUCTURE, ids=[f"{r}-{i}" for i, (r, _, _, _) in enumerate(STRUCTURE)])
def test_structure_rules(rule: str, case: Callable[[], Broken], where_: str, why: str) -> None:
    found = [(w, y) for r, w, y in case() if r == rule]
    assert any(w == where_ and why in y for w, y in found), found or case()


# ---- kernels


def of_fused(change: Callable[[Kernel], Kernel], limits: Limits | None = None, tiles: dict[str, int] | None = None, q: int = 256) -> Broken:
    """What breaks after a change to the one kernel of `backward`, which loops over q."""
    plan = fused(backward(q))
    kernel = change(plan.kernels[0])
    s = Structure(Tiling(plan.graph, tuple((tiles or dict(plan.tiles)).items())), kernel.stages, kernel.grid, kernel.loops)
    return [(r.rule, r.where, r.why) for r in kernel_refusals(s, kernel, limits or Limits())]


def with_handoff(kernel: Kernel, value: str, **change: object) -> Kernel:
    return replace(kernel, handoffs=tuple(replace(h, **change) if h.value == value else h for h in kernel.handoffs))  # pyright: ignore


def one_way(slots: int, *, persistent: bool = False) -> Callable[[Kernel], Kernel]:
    """Only the scores cross, from the Cube to the Vector unit."""

    def change(kernel: Kernel) -> Kernel:
        handoff = Handoff("s", "workspace_s", "cube->vector", "body", slots=slots)
        return replace(kernel, stages=("qk", "softmax"), handoffs=(handoff,), persistent=persistent)

    return change


def many(trips: int) -> dict[str, int]:
    return {"q": 256 // trips, "k": 64, "d": 64}


KERNEL: list[tuple[str, Callable[[], Broken], str, str]] = [
    ("dims-are-placed", lambda: of_fused(lambda k: replace(k, grid=())), "k", "has 2 tiles and is neither in the grid nor in a loop"),
    (
        "workspaces-are-named",
        lambda: of_fused(lambda k: with_handoff(k, "s", name="scores")),
        "scores",
        "without 'workspace' in its name the compiler inserts no flag",
    ),
    ("handoffs-are-complete", lambda: of_fused(lambda k: replace(k, handoffs=k.handoffs[1:])), "s", "has no handoff"),
    ("flags-fit", lambda: of_fused(lambda k: k, Limits(cross_flags=3)), "k1", "need 4 cross-core flags, the hardware has 3"),
    ("single-slots-are-ordered", lambda: of_fused(one_way(1)), "s", "goes cube->vector on one slot in a loop"),
    ("slots-do-not-flood", lambda: of_fused(one_way(0), tiles=many(16)), "s", "may be set 16 times before it is waited for"),
    ("tasks-are-ordered", lambda: of_fused(one_way(0, persistent=True)), "s", "the next task's writer may overtake"),
    ("relays-are-plain", lambda: of_fused(lambda k: with_handoff(k, "s", kind="relay")), "s", "2 Vector cores share its tile by rows"),
    (
        "relays-are-plain",
        lambda: of_fused(lambda k: replace(with_handoff(k, "s", kind="relay", free=True), threads=1)),
        "s",
        "one slot and no free handoff",
    ),
    ("cube-tiles-fit", lambda: of_fused(lambda k: k, tiles={"q": 528, "k": 64, "d": 64}, q=1056), "qk", "takes 67584 B of L0A/L0B"),
    ("memory-fits", lambda: of_fused(lambda k: k, Limits(ub=10_000)), "k1", "B of UB, which has 10000 B"),
]


def test_a_float32_operand_with_the_sum_along_its_rows_is_legal() -> None:
    assert float32_product("m") == []


def test_masked_tiles_are_skipped() -> None:
    graph = variants.small()
    s = structure(graph, "qk", "n g q k", tiles={"q": 64, "k": 64, "d": 128})
    found = [r for r in kernel_refusals(s, Kernel("k1", ("qk",), s.grid), Limits()) if r.rule == "masked-tiles-are-skipped"]
    assert [r.where for r in found] == ["s", "s"], "one for the diagonal, one for the window"
    assert "is kept only where - k + q >= 0; a loop over k or q has to leave out the other tiles" in found[0].why
    looped = structure(graph, "qk", "n g q", "k", tiles={"q": 64, "k": 64, "d": 128})
    assert not list(kernel_refusals(looped, Kernel("k1", ("qk",), looped.grid, looped.loops), Limits()))


@pytest.mark.parametrize(("rule", "case", "where_", "why"), KERNEL, ids=[r for r, _, _, _ in KERNEL])
def test_kernel_rules(rule: str, case: Callable[[], Broken], where_: str, why: str) -> None:
    found = [(w, y) for r, w, y in case() if r == rule]
    assert any(w == where_ and why in y for w, y in found), found or case()


def test_vector_cores_agree() -> None:
    graph = elementwise(lambda x: total(x, over="k"), "q k")
    s = structure(graph, "one", "q", "", tiles={"q": 1, "k": 128})
    found = list(kernel_refusals(s, Kernel("k1", ("one",), ("q",), threads=2), Limits()))
    assert [(r.rule, r.where) for r in found] == [("vector-cores-agree", "k1")]
    assert "use threads 1" in found[0].why


# ---- plans


def dropped(plan: Plan) -> Plan:
    kernel = plan.kernels[0]
    return replace(plan, kernels=(replace(kernel, stages=kernel.stages[1:]),))


def swapped(plan: Plan) -> Plan:
    kernel = plan.kernels[0]
    return replace(plan, kernels=(replace(kernel, name="late", stages=kernel.stages[1:]), replace(kernel, stages=kernel.stages[:1])))


def early_on_the_host(plan: Plan) -> Plan:
    kernel = plan.kernels[0]
    return replace(plan, kernels=(replace(kernel, stages=kernel.stages[1:]),), host_stages=kernel.stages[:1])


PLAN: list[tuple[str, Callable[[Plan], Plan], str]] = [
    ("every-stage-runs-once", dropped, "runs 0 times"),
    ("kernels-are-acyclic", swapped, "whose result it reads"),
    ("host-stages-are-last", early_on_the_host, "runs on the host, but stage"),
]


@pytest.mark.parametrize(("rule", "change", "why"), PLAN, ids=[r for r, _, _ in PLAN])
def test_plan_rules(rule: str, change: Callable[[Plan], Plan], why: str) -> None:
    check = next(f for f in PLAN_RULES if f.__name__.replace("_", "-") == rule)
    assert list(check(fused())) == []
    assert any(why in y for _, y in check(change(fused())))


def test_every_rule_has_a_test() -> None:
    tested = {r for r, _, _, _ in (*STRUCTURE, *KERNEL)} | {r for r, _, _ in PLAN} | {"vector-cores-agree", "masked-tiles-are-skipped"}
    rules = {f.__name__.replace("_", "-") for f in (*STRUCTURE_RULES, *KERNEL_RULES, *PLAN_RULES)} | {"memory-fits"}
    assert tested == rules
