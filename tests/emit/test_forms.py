"""Every special form of emission on the simulator: right numbers and no finding, in the fewest and in the most kernels."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace

import pytest

from fusion.emit.casts import CASTABLE, chain
from fusion.emit.emit import emit
from fusion.graph import StageGraph
from fusion.toolchain import find
from fusion.verify.data import Draw, random_inputs
from fusion.verify.run import verify_plan
from tests.emit import small
from tests.emit.test_random import plans

needs_tools = pytest.mark.skipif(find() is None or shutil.which("g++") is None, reason="needs the compiler and g++")
FORMS: dict[str, Callable[[], StageGraph]] = {
    "state that leaves": small.state_that_leaves,
    "state for the Cube in every step": lambda: small.state_for_the_cube(inside=True),
    "state for the Cube after the scan": lambda: small.state_for_the_cube(inside=False),
    "sum for the Cube": small.sum_for_the_cube,
    "integers": small.integers,
    "narrow selects": small.narrow_selects,
    "weights of int8": small.weights_of_int8,
    "rows by index": small.rows_by_index,
    "names of buffers": small.names_of_buffers,
    "names of generated code": small.names_of_generated_code,
    "sum of what is loaded": small.sum_of_what_is_loaded,
    "ranked rows": lambda: small.ranked_rows(341, 100, 7),
    "ranked rows, all kept": lambda: small.ranked_rows(20, 32, 32),
    "long ranked rows": lambda: small.ranked_rows(9, 2047, 64),
    "a ranked row": lambda: small.ranked_rows(0, 100, 8),
    "ranked for the Cube": small.ranked_for_the_cube,
}


@needs_tools
@pytest.mark.parametrize("form", FORMS)
def test_every_plan_is_clean(form: str) -> None:
    graph = FORMS[form]()
    found = list(plans(graph))
    assert found
    for plan in found:
        verdict = verify_plan(plan, random_inputs(graph, Draw()))
        assert verdict.errors == (), f"{verdict.errors[0]}\n{plan}"
        assert verdict.verdict == "clean", f"{verdict.outputs}\n{plan}"


def source(form: str) -> str:
    return emit(next(plans(FORMS[form]()))).kernels[0].source


def test_rows_are_copied_one_by_one_if_they_exist() -> None:
    text = source("rows by index")
    assert "for left_row in T.serial(block_t):" in text
    assert "left_at = ids_ub[left_row]" in text
    assert "if left_at >= 0 and left_at < 37 and " in text
    assert "T.copy(W_d[b_i, left_at, 0:block_d], left_ub[left_row, 0:block_d])" in text
    assert "rows_ub" not in text, "only slices of the rows are used"


def test_casts_round_once() -> None:
    assert chain("float32", "int8") == ("int32", "float32", "float16", "int8"), "to an integer first: float16 would round twice"
    assert chain("float32", "float16") == ("float16",)
    assert all(chain(a, b)[-1] == b for a in CASTABLE for b in CASTABLE if a != b)


def test_short_vectors_are_not_copied_in_blocks() -> None:
    assert "T.tile.mul(m_ub, m_new_ub, 1.0)" in source("state that leaves")


@needs_tools
def test_rows_ranked_in_rounds_wait_for_the_stores_of_the_round_before() -> None:
    """The compiler orders what an inner loop writes after the last round's store only if the loop around it writes there too."""
    graph = FORMS["ranked rows"]()
    plan = next(plans(graph))
    rounds = replace(plan, kernels=tuple(replace(k, persistent=True) for k in plan.kernels))
    verdict = verify_plan(rounds, random_inputs(graph, Draw()))
    assert verdict.errors == ()
    assert verdict.verdict == "clean", verdict.outputs


def test_values_and_places_come_from_one_sort() -> None:
    text = source("ranked rows")
    assert text.count("T.tile.topk(") == 3, "steps, X for narrow, X for first"
    assert "T.tile.topk(pairs_ub, line_ub, 32, 100)" in text
