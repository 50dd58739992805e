"""The planner against brute force: all partitions, tilings and host stages, each kernel realized by itself."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cached_property

import networkx as nx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fusion.device import load
from fusion.errors import FusionError
from fusion.graph import Expr, Graph, StageGraph, cast, contract, rsqrt, total, where
from fusion.plan.atoms import Atoms
from fusion.plan.device import Limits
from fusion.plan.planner import Planner
from fusion.plan.realize import assignments, realize
from fusion.plan.rules import PAIR_RULES, SET_RULES
from fusion.plan.structure import Structure
from fusion.plan.tiling import FRACTAL, Tiling, tilings, whole_dims
from kernels.attention_sink import gqa_sink_bwd
from tests.plan import variants
from tests.plan.test_search import contracted, set_partitions
from tests.strategies import stage_graphs

SMALL = Limits(ub=24_000, l1=60_000, l0c=12_000)
"""So little that sizes decide: a tile of 64 x 64 floats takes 16,384 bytes."""


def grown(graph: StageGraph) -> StageGraph:
    """The graph with several fractals in every dim, and two tile sizes to choose from."""
    return replace(graph, dims=tuple(replace(d, size=2 * FRACTAL * d.size, tiles=(32, 64)) for d in graph.dims))


def cheapest(atoms: Atoms, tiling: Tiling, stages: frozenset[str], limits: Limits) -> float | None:
    """A kernel's cost, with the best choice of what the host runs instead."""
    found: list[float] = []
    for n in range(len(stages & atoms.movable) + 1):
        for moved in itertools.combinations(sorted(stages & atoms.movable), n):
            option = realize(tiling, atoms.stages_of(stages - set(moved)), limits) if stages - set(moved) else None
            found += [option.cost.us + atoms.host_us(atoms.stages_of(frozenset(moved)))] if option else []
    return min(found, default=None)


def brute_force(graph: StageGraph, limits: Limits) -> dict[int, float]:
    """The least cost of each count that has a plan."""
    atoms, best = Atoms(graph), dict[int, float]()
    for tiling in tilings(graph):
        known: dict[frozenset[str], float | None] = {}
        for kernels in set_partitions(list(atoms.stages)):
            if nx.is_directed_acyclic_graph(contracted(atoms.order, kernels)):
                for k in (k for k in kernels if k not in known):
                    known[k] = cheapest(atoms, tiling, k, limits)
                costs = [c for k in kernels if (c := known[k]) is not None]
                if len(costs) == len(kernels):
                    best[len(kernels)] = min(best.get(len(kernels), sum(costs)), sum(costs))
    return best


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(stage_graphs(min_stages=2, max_stages=4, scans=True), st.sampled_from([Limits(), SMALL]))
def test_plans_are_the_cheapest_there_are(graph: StageGraph, limits: Limits) -> None:
    larger = grown(graph)
    planner = Planner(larger, limits)
    found = planner.possible(tuple(range(1, len(planner.atoms) + 1)), 2)
    want = brute_force(larger, limits)
    assert {n: plans[0].us for n, plans in found.items() if plans} == pytest.approx(want)
    for plans in found.values():
        assert [p.us for p in plans] == sorted(p.us for p in plans)


@settings(max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(stage_graphs(min_stages=2, max_stages=4, scans=True))
def test_a_retiled_structure_is_like_a_new_one(graph: StageGraph) -> None:
    """What tilings share must not depend on what tells them apart."""
    larger = grown(graph)
    stages = tuple(s.name for s in larger.stages)
    for one, other in itertools.permutations(itertools.islice(tilings(larger), 6), 2):
        if one.spread == other.spread:
            for way in assignments(one, stages)[:4]:
                first = Structure(one, stages, way.grid, way.loops)
                told = {f: getattr(first, f) for f in FACTS}
                again, new = first.retiled(other), Structure(other, stages, way.grid, way.loops)
                assert told  # all is cached now
                assert {f: getattr(again, f) for f in FACTS} == {f: getattr(new, f) for f in FACTS}
                assert [list(rule(first)) for rule in (*PAIR_RULES, *SET_RULES)] == [list(rule(new)) for rule in (*PAIR_RULES, *SET_RULES)]


FACTS = [name for name, kind in vars(Structure).items() if isinstance(kind, cached_property) and name != "known"]


def test_what_overflows_is_not_planned() -> None:
    """One kernel needs 3 accumulators of 16,384 bytes; two kernels have 2 at most."""
    g = Graph("three")
    for d in "mnk":
        g.dim(d, 64)
    out = []
    for i in range(3):
        a, b = g.input(f"A{i}", "m k", "float16"), g.input(f"B{i}", "k n", "float16")
        with g.cube(f"product{i}"):
            out.append(g.let(f"y{i}", contract(a, b, over="k")))
    for y in out:
        g.output(y)
    planner = Planner(g.build(), Limits(l0c=40_000))
    assert [n for n, plans in planner.possible((1, 2, 3)).items() if plans] == [2, 3]
    with pytest.raises(FusionError, match=r"49152 B of L0C, which has 40000 B.*rule memory-fits") as caught:
        planner.plan(1)
    assert caught.value.remedy == "nearest count that works: 2 (--target 2)"


def test_a_stage_that_cannot_be_alone_is_planned_with_its_neighbour() -> None:
    g = Graph("mask")
    for d in "qd":
        g.dim(d, 64)
    x = g.input("x", "q d", "float32")
    with g.vector("compare"):
        c = g.let("c", x > 0.0)
    with g.vector("choose"):
        y = g.let("y", where(c, x, 0.5))
    g.output(y)
    planner = Planner(g.build())
    assert [k.stages for k in planner.plan(1)[0].plan.kernels] == [("compare", "choose")]
    with pytest.raises(FusionError, match=r"compare: c = lt would be stored.*\(rule masks-stay-in-ub\), if compare is a kernel of its own"):
        planner.plan(2)


def normalised(rows: int, k: int, tiles: tuple[int, ...] = (), apart: bool = False) -> StageGraph:
    """Y = rms_norm(X) W; with `apart` the sum of squares is a stage of its own."""
    g = Graph("normalised")
    g.dim("m", rows)
    g.dim("k", k, tiles=tiles)
    g.dim("n", 256)
    X, W = g.input("X", "m k", "float16"), g.input("W", "k n", "float16")

    def scaled() -> Expr:
        return g.let("h", cast(cast(X, "float32") * rsqrt(r), "float16"))

    with g.vector("squares" if apart else "norm"):
        x = cast(X, "float32")
        r = g.let("r", total(x * x, over="k"))
        h = None if apart else scaled()
    if h is None:
        with g.vector("norm"):
            h = scaled()
    with g.cube("product"):
        y = g.let("y", contract(h, W, over="k"))
    g.output(y)
    return g.build()


@pytest.mark.parametrize(("k", "padded"), [(300, 304), (512, 512), (1000, 1008), (1536, 1536)])
def test_a_row_that_is_read_twice_is_one_tile(k: int, padded: int) -> None:
    """The sum over a row is complete only when all of it has been seen: no smaller tile suits, so that none is tried."""
    graph = normalised(512, k)
    assert whole_dims(graph) == {"k": "r"}
    for count, plans in Planner(graph).possible((1, 2), 1).items():
        assert dict(plans[0].plan.tiles)["k"] == padded, count
        assert dict(plans[0].plan.tiles)["m"] in (16, 32, 64), "few rows at once"


def test_a_row_that_is_read_once_is_tiled() -> None:
    graph = normalised(512, 4096, apart=True)
    assert whole_dims(graph) == {}
    assert dict(Planner(graph).plan(2)[0].plan.tiles)["k"] <= 128


def test_a_scan_sums_its_own_steps() -> None:
    assert whole_dims(variants.small()) == {}


@pytest.mark.parametrize(
    ("graph", "what", "remedy"),
    [
        (normalised(512, 8192), "stages norm: needs .* B of UB.*rule memory-fits", "read r in a stage of its own, or make it a state"),
        (normalised(512, 1024, (128,)), "norm: r of stage norm is summed across blocks over k", r"leave out tiles=(128,) of dim k"),
    ],
)
def test_what_stands_in_the_way_of_a_long_row(graph: StageGraph, what: str, remedy: str) -> None:
    with pytest.raises(FusionError, match=what) as caught:
        Planner(graph).plan(1)
    assert remedy in (caught.value.remedy or "")


def test_a_refused_count_names_the_kernels_that_cannot_be_one() -> None:
    """Three products in a row need three kernels; two are refused for a pair of them."""
    g = Graph("chain")
    for d in "abcde":
        g.dim(d, 128)
    x = g.input("x", "a b", "float32")
    for i, (over, new) in enumerate(("bc", "cd", "de")):
        w = g.input(f"w{i}", f"{over} {new}", "float32")
        with g.cube(f"product{i}"):
            x = g.let(f"y{i}", contract(x, w, over=over))
    g.output(x)
    with pytest.raises(FusionError) as caught:
        Planner(g.build()).plan(2)
    assert "y0 comes from Cube stage product0" in caught.value.what
    assert caught.value.what.endswith("(rule no-cube-to-cube), if [product0] and [product1] are one kernel")
    assert caught.value.remedy == "nearest count that works: 3 (--target 3)"


@pytest.mark.parametrize(("ub", "persistent"), [(196_352, False), (210_000, True)])
def test_a_persistent_kernel_that_overflows_leaves_one_block_a_task(ub: int, persistent: bool) -> None:
    """A persistent kernel keeps a tile more, as the store of one task and the work of the next overlap."""
    norm, _ = Planner(normalised(1024, 1536), Limits(ub=ub)).plan(2)[0].plan.kernels
    assert norm.stages == ("norm",)
    assert norm.persistent == persistent


def test_asking_twice_gives_the_same() -> None:
    planner = Planner(normalised(512, 1536))
    assert planner.possible((1, 2), 2) == planner.possible((1, 2), 2) == Planner(planner.graph).possible((1, 2), 2)


def test_an_equal_graph_is_the_same_to_the_planner() -> None:
    """Planning an operator a second time compares no graphs: it works with the first one."""
    one, other = normalised(512, 512), normalised(512, 512)
    assert one is not other
    assert Planner(other).graph is Planner(one).graph


def test_costs_are_those_of_the_device() -> None:
    """A device with a quarter of the bandwidth: plans are estimated with its numbers, not with the default ones."""
    graph = gqa_sink_bwd(heads=8, groups=8, seq_len=1024, window=128)
    device = load("910B3")
    slow = device.with_values({k: device[k] / 4 for k in ("gm.cube_rate", "gm.vector_rate", "gm.fix_rate", "gm.hbm_rate", "gm.l2_rate")})
    fast, slower = (Planner(graph, d.limits()).plan(6)[0] for d in (device, slow))
    assert slower.us > 1.5 * fast.us and slower.host_us > fast.host_us
    assert Planner(graph, Limits()).plan(6)[0].us == fast.us, "the 910B3 is the default"
