"""What follows from stages, grid and loops; and that the search's shortcuts refuse nothing that the rules allow."""

from __future__ import annotations

import itertools
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fusion.graph import StageGraph
from fusion.plan.planner import Planner
from fusion.plan.prefilter import Prefilter
from fusion.plan.realize import assignments
from fusion.plan.rules import structure_refusals
from fusion.plan.structure import Structure
from fusion.plan.tiling import FRACTAL, Tiling, matrix_dims
from tests.passes.small import TILES, backward
from tests.plan import variants
from tests.strategies import stage_graphs


def tiled(graph: StageGraph) -> Tiling:
    """The graph with several fractals in every dim, and one fractal a tile."""
    larger = replace(graph, dims=tuple(replace(d, size=FRACTAL * d.size) for d in graph.dims))
    return Tiling(larger, tuple((d.name, FRACTAL) for d in larger.dims if d.name in matrix_dims(larger)))


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(stage_graphs(min_stages=2, max_stages=5, scans=True), st.data())
def test_the_prefilter_allows_what_the_rules_allow(graph: StageGraph, data: st.DataObject) -> None:
    tiling = tiled(graph)
    atoms = Planner(tiling.graph).atoms
    prefilter = Prefilter(tiling, atoms)
    chosen = data.draw(st.sets(st.sampled_from(sorted(atoms)), min_size=1, max_size=3))
    stages = tuple(s.name for s in tiling.graph.stages if any(s.name in atoms[a] for a in chosen))
    allowed = prefilter.legal_so_far(frozenset(chosen))
    for way in assignments(tiling, stages):
        if not list(structure_refusals(Structure(tiling, stages, way.grid, way.loops))):
            assert way in allowed
            for part in itertools.combinations(sorted(chosen), max(1, len(chosen) - 1)):
                assert prefilter.possible(frozenset(part)), "a smaller kernel must be extensible to a legal one"


def test_levels_follow_the_loops() -> None:
    s = Structure(Tiling(backward(), TILES), ("qk", "softmax", "dv", "cast_dv"), ("k",), ("q",))
    assert {v: s.levels[v] for v in ("s", "p_cast", "dv_acc", "dV")} == {"s": "body", "p_cast": "body", "dv_acc": "body", "dV": "epilogue"}
    assert s.complete_after_loop("dv_acc")
    assert s.absorbed == {"dV"}


def test_handoffs_go_where_units_change() -> None:
    s = Structure(Tiling(backward(), TILES), ("qk", "softmax", "dv"), ("k",), ("q",))
    assert [(h.value, h.direction, h.level) for h in s.handoffs] == [("s", "cube->vector", "body"), ("p_cast", "vector->cube", "body")]


def test_what_a_scan_ends_with_crosses_after_it() -> None:
    graph = variants.small()
    scan = graph.scan_groups()[0]
    alone = Structure(Tiling(graph, (("q", 64), ("k", 64), ("d", 128))), scan, ("n", "g", "q"), ("k",))
    assert alone.complete_after_loop("o_new"), "a stage of another kernel reads it"
    assert set(alone.stored) >= {"o_new", "m_new", "l_new"}
    assert alone.bounds["k"], "the mask bounds the loop"


def test_rows_are_shared_and_numbers_are_not() -> None:
    s = Structure(Tiling(backward(), TILES), ("qk", "softmax"), ("q", "k"), ())
    assert s.split == dict.fromkeys(("p__1", "p", "p_cast"), "q")
    odd = Structure(Tiling(backward(), (("q", 16), ("k", 64), ("d", 64))), ("qk", "softmax"), ("q", "k"), ())
    assert odd.split == dict.fromkeys(("p__1", "p", "p_cast"), "q")
