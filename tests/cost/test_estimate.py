"""The planner's estimate: what it must follow."""

from __future__ import annotations

from dataclasses import replace

from fusion.cost.host import host_us
from fusion.cost.model import estimate
from fusion.device import load
from fusion.plan.planner import Planner
from fusion.plan.structure import Structure
from fusion.plan.tiling import Tiling
from kernels.attention_sink import gqa_sink_bwd
from kernels.moe import moe_gate


def fused():
    plan = Planner(gqa_sink_bwd(heads=8, groups=2, seq_len=512, window=128)).plan(2, 1)[0].plan
    kernel = plan.kernels[-1]
    return Structure(Tiling(plan.graph, plan.tiles), kernel.stages, kernel.grid, kernel.loops), kernel


def test_parts_are_positive_and_add_up() -> None:
    structure, kernel = fused()
    cost = estimate(structure, kernel, None)
    parts = (cost.cube_us, cost.vector_us, cost.transfer_us, cost.handoff_us, cost.start_us)
    assert min(parts) > 0 and cost.launch_us < cost.us <= cost.launch_us + sum(parts) + 2.0


def test_a_faster_device_is_faster() -> None:
    structure, kernel = fused()
    slow = load().with_values({"gm.vector_rate": 50.0, "gm.cube_rate": 50.0, "sync.cross_latency": 900.0})
    assert estimate(structure, kernel, slow).us > 1.1 * estimate(structure, kernel, None).us


def test_starting_a_block_for_every_task_costs() -> None:
    structure, kernel = fused()
    assert estimate(structure, replace(kernel, persistent=False), None).us > estimate(structure, replace(kernel, persistent=True), None).us


def test_host_steps_follow_their_bytes() -> None:
    assert host_us(1 << 30, None) > host_us(1 << 20, None) > 0


def test_every_row_of_a_top_k_is_sorted_by_itself() -> None:
    """As many elements in more rows take longer: each row's sort has its instructions' starts."""
    few, many = (Planner(moe_gate(tokens=t, experts=e)).plan(1)[0].us for t, e in ((4096, 512), (32768, 64)))
    assert many > 1.5 * few
