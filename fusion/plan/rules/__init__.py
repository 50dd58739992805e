"""What makes a kernel or a plan legal: a table of named rules, each a function that says what breaks it.

Rules about structure look only at stages, grid and loops; rules about a kernel look at its handoffs too; rules about memory look at the
buffers that emission would allocate. Sources: the device's public figures and the behaviour of tilelang-ascend 0.1.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fusion.plan.device import Limits
from fusion.plan.rules import flow, handoffs, kernels, plans, tiles
from fusion.plan.rules.handoffs import ordered_by_cycles, single_slots_are_ordered, slots_do_not_flood
from fusion.plan.rules.kernels import cube_tiles_fit, masked_tiles_are_skipped, memory_fits
from fusion.plan.structure import Structure
from fusion.plan.types import Kernel, Plan, Refusal

__all__ = [
    "DEFAULT_RULES",
    "GROWING_RULES",
    "KERNEL_RULES",
    "LASTING_RULES",
    "PAIR_RULES",
    "PLAN_RULES",
    "SET_RULES",
    "SIZE_RULES",
    "STRUCTURE_RULES",
    "cube_tiles_fit",
    "kernel_refusals",
    "masked_tiles_are_skipped",
    "memory_fits",
    "name",
    "ordered_by_cycles",
    "single_slots_are_ordered",
    "slots_do_not_flood",
    "structure_refusals",
]

Broken = Iterator[tuple[str, str]]  # where, why
StructureRule = Callable[[Structure], Broken]
KernelRule = Callable[[Structure, Kernel, Limits], Broken]
PlanRule = Callable[[Plan], Broken]

PAIR_RULES: tuple[StructureRule, ...] = (
    flow.exists_after,
    tiles.has_tile_code,
    tiles.tiles_are_matrices,
    tiles.rows_are_gathered,
    tiles.rows_are_ranked,
    tiles.float32_is_not_transposed,
    flow.grid_sum_is_final,
    flow.only_sums_cross_blocks,
    flow.no_cube_to_cube,
)
"""Rules that a kernel breaks if and only if one of its stages, or two that are linked, break it."""

SET_RULES: tuple[StructureRule, ...] = (
    flow.phases_share_outputs,
    flow.scans_stay_whole,
    flow.scan_is_the_loop,
    flow.loop_sum_is_final,
    flow.body_values_stay_in_body,
    flow.sums_run_all_loops,
    flow.one_block_stores,
    flow.one_crossing_each,
    tiles.numbers_meet_tiles,
    tiles.slices_are_loaded,
    tiles.masks_stay_in_ub,
)
"""Rules that depend on all stages of a kernel together."""

SIZE_RULES: tuple[StructureRule, ...] = (tiles.tiles_are_fractals, tiles.rows_are_blocks, tiles.comparisons_fill_repeats)
"""Rules that a kernel breaks if and only if one of its stages does; of all structural rules, only these look at sizes."""

STRUCTURE_RULES: tuple[StructureRule, ...] = (*PAIR_RULES, *SET_RULES, *SIZE_RULES)

GROWING_RULES: tuple[StructureRule, ...] = (
    *PAIR_RULES,
    flow.scan_is_the_loop,
    flow.loop_sum_is_final,
    flow.body_values_stay_in_body,
)
"""Rules that a kernel which breaks them cannot mend by taking in more stages."""

KERNEL_RULES: tuple[KernelRule, ...] = (
    kernels.dims_are_placed,
    handoffs.workspaces_are_named,
    handoffs.handoffs_are_complete,
    handoffs.flags_fit,
    handoffs.single_slots_are_ordered,
    handoffs.slots_do_not_flood,
    handoffs.tasks_are_ordered,
    handoffs.relays_are_plain,
    kernels.vector_cores_agree,
    kernels.cube_tiles_fit,
    kernels.masked_tiles_are_skipped,
)

DEFAULT_RULES: tuple[KernelRule, ...] = (handoffs.flags_fit, handoffs.slots_do_not_flood)
"""Rules about handoffs that a kernel with default ones (realize.py) may still break; it keeps the others by the way it is made. What is
left for it are `masked_tiles_are_skipped` and, stage by stage, `cube_tiles_fit`."""
LASTING_RULES: tuple[KernelRule, ...] = (handoffs.single_slots_are_ordered, handoffs.slots_do_not_flood, handoffs.tasks_are_ordered)
"""Rules that a persistent kernel may break where one block for each task does not."""

PLAN_RULES: tuple[PlanRule, ...] = (plans.every_stage_runs_once, plans.kernels_are_acyclic, plans.host_stages_are_last)


def name(rule: Callable[..., Broken]) -> str:
    """`cube_tiles_fit` as users see it: cube-tiles-fit."""
    return rule.__name__.replace("_", "-")


def structure_refusals(s: Structure) -> Iterator[Refusal]:
    """Every structural rule that the kernel breaks."""
    for rule in STRUCTURE_RULES:
        for where, why in rule(s):
            yield Refusal(name(rule), where, why)


def kernel_refusals(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[Refusal]:
    """Every rule that a kernel breaks; memory is looked at only if all else holds."""
    found = list(structure_refusals(s))
    for rule in KERNEL_RULES if not found else ():
        found += [Refusal(name(rule), where, why) for where, why in rule(s, kernel, limits)]
    if not found:
        found += [Refusal("memory-fits", where, why) for where, why in memory_fits(s, kernel, limits)]
    yield from found
