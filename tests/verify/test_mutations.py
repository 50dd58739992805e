"""The simulator can fail: every synchronization that is left out is noticed, or proved to be redundant."""

from __future__ import annotations

import pytest

from fusion.graph import StageGraph
from fusion.verify.data import Draw, random_inputs
from fusion.verify.mutate import mutations, table
from fusion.verify.run import lower_program
from tests.verify.conftest import program

SEEN_INSIDE_A_CORE = 0.6  # least share of flags and barriers whose loss shows: the compiler's gemm sets many of its own besides


@pytest.mark.parametrize("count", [2, 4])
def test_every_cross_core_pair_matters(graph: StageGraph, count: int) -> None:
    emitted = program(graph, count)
    found = mutations(emitted, lower_program(emitted), random_inputs(graph, Draw()), ("cross",))
    assert len({m.kernel for m in found}) == 2, table(found)
    assert all(m.outcome != "missed" for m in found), "\n".join(map(str, found))
    assert sum(m.outcome == "found" for m in found) >= 0.9 * len(found), table(found)


def test_pairs_inside_a_core_are_found_or_redundant(graph: StageGraph) -> None:
    emitted = program(graph, 2)
    found = mutations(emitted, lower_program(emitted), random_inputs(graph, Draw()), ("flag", "barrier"))
    assert not [str(m) for m in found if m.outcome == "missed"]
    assert sum(m.outcome == "found" for m in found) >= SEEN_INSIDE_A_CORE * len(found), table(found)
