"""What the scheduler does with a few instructions."""

from __future__ import annotations

import pytest

from fusion.timeline.library import schedule
from tests.timeline.small import ALL, BARRIER, CROSS_SET, CROSS_WAIT, FAST, FIX, MTE2, RUN, SCALAR, SET, WAIT, S, V, item, items


def test_instructions_of_one_pipe_follow_each_other() -> None:
    found = schedule(items(item(RUN, V, fixed=10), item(RUN, V, fixed=20)), 2, FAST)
    assert found and found.ns == pytest.approx(30) and found.busy[1, V] == pytest.approx(30)


def test_pipes_run_side_by_side() -> None:
    found = schedule(items(item(RUN, V, fixed=10), item(RUN, MTE2, fixed=20)), 2, FAST)
    assert found and found.ns == pytest.approx(20)


def test_a_flag_waits_for_work_and_its_latency() -> None:
    given = items(
        item(RUN, MTE2, fixed=10, latency=5),
        item(SET, MTE2, other=V),
        item(WAIT, MTE2, other=V),
        item(RUN, V, fixed=3),
        item(RUN, MTE2, fixed=1),
    )
    found = schedule(given, 2, FAST)
    assert found and list(found.start[[3, 4]]) == pytest.approx([15, 10])
    assert found.waits[1, V, MTE2] == pytest.approx(15)
    assert found.pred[3] == 0


def test_a_full_barrier_holds_the_scalar_unit() -> None:
    given = items(item(RUN, V, fixed=10), item(BARRIER, ALL, fixed=2), item(SCALAR, S, fixed=4), item(RUN, MTE2, fixed=1))
    found = schedule(given, 2, FAST)
    assert found and found.ns == pytest.approx(17)


def test_a_cross_core_flag_comes_later_to_both_vector_streams() -> None:
    given = items(
        item(RUN, FIX, 0, fixed=10), item(CROSS_SET, FIX, 0, other=2, flag=3),
        *(x for s in (1, 2) for x in (item(CROSS_WAIT, S, s, flag=3), item(RUN, V, s, fixed=1))),
    )  # fmt: skip
    found = schedule(given, 2, (1e9, 1e9, 1e9, 7.0))
    assert found and list(found.start[[3, 5]]) == pytest.approx([17, 17])
    assert found.waits[1, S, 8] == pytest.approx(17)


def test_the_cube_waits_for_both_vector_streams() -> None:
    given = items(
        item(CROSS_WAIT, S, 0, flag=1), item(RUN, MTE2, 0, fixed=1),
        item(RUN, V, 1, fixed=5), item(CROSS_SET, V, 1, other=2, flag=1), item(RUN, V, 2, fixed=9), item(CROSS_SET, V, 2, other=2, flag=1),
    )  # fmt: skip
    found = schedule(given, 2, FAST)
    assert found and found.start[1] == pytest.approx(9)


def test_transfers_share_the_bandwidth_of_their_side() -> None:
    loads = [item(RUN, MTE2, s, bytes=100) for s in (1, 2)]
    found = schedule(items(*loads), 2, (1e9, 10.0, 1e9, 0.0))
    assert found and found.ns == pytest.approx(20) and found.flow_ns == pytest.approx(20)
    capped = schedule(items({**loads[0], "cap": 5.0}), 2, FAST)
    assert capped and capped.ns == pytest.approx(20)


def test_late_transfers_end() -> None:
    """After tens of milliseconds a time in ns cannot hold what the last bytes of a fast transfer take."""
    found = schedule(items(item(SCALAR, S, fixed=3e8), item(RUN, MTE2, bytes=65536)), 2, (1e9, 161.7, 174.3, 0.0))
    assert found and found.ns == pytest.approx(3e8 + 65536 / 161.7)


def test_the_beginning_of_streams_may_end_in_a_wait() -> None:
    given = items(item(RUN, V, 1, fixed=4), item(CROSS_WAIT, S, 0, flag=1), item(RUN, FIX, 0, fixed=1))
    found = schedule(given, 2, FAST, beginning=True)
    assert found and found.ns == pytest.approx(4) and list(found.start) == [0, -1, -1]


def test_a_flag_that_nothing_sets_is_told() -> None:
    assert schedule(items(item(CROSS_WAIT, S, 0, flag=1)), 2, FAST) is None
