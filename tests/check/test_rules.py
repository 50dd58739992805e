"""The shared rules on hand-made handoffs, both ways each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fusion.check.dynamic import remedy_for
from fusion.rules import handoffs, memory, names
from fusion.rules.handoffs import Hand

LOOP = ("k",)
SCORES = Hand("s", "cube->vector", LOOP, made=1, read=2, sources=frozenset())
WEIGHTS = Hand("p", "vector->cube", LOOP, made=3, read=4, sources=frozenset({"s"}))


def test_a_way_back_in_the_same_loop_orders_both() -> None:
    assert not handoffs.may_be_overtaken(SCORES, [SCORES, WEIGHTS])
    assert not handoffs.may_be_overtaken(WEIGHTS, [SCORES, WEIGHTS])


def test_one_way_on_one_slot_may_be_overtaken() -> None:
    assert handoffs.may_be_overtaken(SCORES, [SCORES])
    assert handoffs.may_be_overtaken(WEIGHTS, [WEIGHTS])


@pytest.mark.parametrize("change", [{"slots": 0}, {"free": True}, {"loops": ()}])
def test_slots_a_free_signal_or_no_loop_make_it_safe(change: dict[str, object]) -> None:
    safe = replace(SCORES, **change)  # pyright: ignore[reportArgumentType]
    assert not handoffs.may_be_overtaken(safe, [safe])


def test_a_way_back_that_does_not_depend_on_the_tile_orders_nothing() -> None:
    unrelated = replace(WEIGHTS, sources=frozenset(), read=4)
    assert handoffs.may_be_overtaken(SCORES, [SCORES, unrelated])


def test_a_value_carried_to_the_next_iteration_orders_it() -> None:
    first = Hand("x", "vector->cube", LOOP, made=1, read=2, sources=frozenset(), carried=frozenset({"y"}))
    second = Hand("y", "cube->vector", LOOP, made=3, read=4, sources=frozenset({"x"}))
    assert not handoffs.may_be_overtaken(second, [first, second])


def test_flags_flood_only_without_a_way_back() -> None:
    many = replace(SCORES, slots=0)
    assert handoffs.may_flood(many, [many], trips=16, depth=15)
    assert not handoffs.may_flood(many, [many], trips=15, depth=15)
    assert not handoffs.may_flood(many, [many, WEIGHTS], trips=16, depth=15)


def test_counts_guards_and_flags() -> None:
    assert handoffs.counts_agree(2, 2) and not handoffs.counts_agree(1, 2)
    assert handoffs.guards_agree(["a"], ["a"]) and not handoffs.guards_agree(["a"], [])
    assert handoffs.flags_needed(3, 2) == 5


def test_names() -> None:
    assert names.is_ordered("my_workspace") and not names.is_ordered("scratch")
    assert names.renamed("s", frozenset()) == "workspace_s"
    assert names.renamed("s", frozenset({"workspace_s", "workspace_s_2"})) == "workspace_s_3"


def test_bytes_and_alignment() -> None:
    assert memory.cube_operand_bytes(512, 64, 2) == 512 * 64 * 2
    assert memory.cube_operand_bytes(128, 256, 2) == 2 * 128 * 128 * 2
    assert memory.fractal_rest(200, 2) == 8 and not memory.fractal_rest(208, 2) and memory.fractal_rest(48, 1) == 16
    assert memory.block_rest(6, 4) == 24 and not memory.block_rest(8, 4)
    assert memory.over(11, 10) and not memory.over(10, 10)


@pytest.mark.parametrize(
    ("rule", "kind", "said"),
    [
        ("blocks-write-write", "race", "blocks cannot be ordered"),
        ("cross-core-write-after-write", "race", "an index with vid"),
        ("write-after-read", "race", "order the two"),
        ("new-kind", "unheard", "see the message"),
    ],
)
def test_remedies_fit_what_raced(rule: str, kind: str, said: str) -> None:
    assert said in remedy_for(rule, kind)
