"""From a set of stages to the cheapest legal kernel: grid and loops, slots, free handoffs, threads, persistence."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

from fusion.cost.simple import KernelCost, estimate
from fusion.plan.device import Limits
from fusion.plan.masks import conditions
from fusion.plan.rules import KERNEL_RULES, kernel_refusals, memory_fits, ordered_by_cycle, structure_refusals
from fusion.plan.structure import Structure
from fusion.plan.tiling import Tiling
from fusion.plan.trips import most_visited
from fusion.plan.types import Handoff, Kernel, Placement, Refusal


@dataclass(frozen=True)
class Realized:
    """A legal kernel with its estimated cost."""

    kernel: Kernel
    structure: Structure
    cost: KernelCost


def assignments(tiling: Tiling, stages: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Ways to spread the dims with several tiles over the grid and the loops.

    A dim that every stage has and none sums over, scans or bounds by a mask goes to the grid: its blocks share nothing.
    """
    graph = tiling.graph
    per_stage = [graph.stage_dims(n) for n in stages]
    have = frozenset[str]().union(*per_stage)
    common = frozenset.intersection(*per_stage)
    special = {d for n in stages for op in graph.stage(n).body for d in op.over} | {graph.stage(n).scan for n in stages}
    special |= {d for c in conditions(graph) for d in c.dims}
    dims = [d for d in tiling.spread if d in have]
    free = [d for d in dims if not (d in common and d not in special)]
    for loops in itertools.chain.from_iterable(itertools.combinations(free, n) for n in range(min(len(free), 3) + 1)):
        yield tuple(d for d in dims if d not in loops), loops


def default_kernel(structure: Structure, name: str, limits: Limits) -> Kernel:
    """The kernel with the compiler-safe choice for every handoff."""
    threads = 1 if structure.split is None else 2
    kernel = Kernel(name, structure.order, structure.grid, structure.loops, threads=threads, handoffs=structure.handoffs)
    handoffs = tuple(safe(structure, h, structure.handoffs, limits) for h in structure.handoffs)
    return replace(kernel, handoffs=handoffs, placements=placements(structure, handoffs))


def safe(structure: Structure, handoff: Handoff, others: tuple[Handoff, ...], limits: Limits) -> Handoff:
    """One slot where a cycle orders it, else a slot for every iteration if a flag can count them, else a free handoff."""
    if handoff.level != "body" or not structure.loops or ordered_by_cycle(structure, handoff, others):
        return handoff
    if most_visited(structure) <= limits.flag_depth:
        return replace(handoff, slots=0)
    return replace(handoff, free=True, slots=handoff.slots)


def placements(structure: Structure, handoffs: tuple[Handoff, ...]) -> tuple[Placement, ...]:
    """Where every value lives that another stage or the caller sees."""
    found: list[Placement] = []
    handed = {h.value: h for h in handoffs}
    for out, (stage, _) in structure.made.items():
        others = any(s.name != stage.name for s, _ in structure.readers.get(out, ()))
        if structure.atomic(out):
            found.append(Placement(out, "atomic"))
        elif out in structure.stored and (out not in handed or handed[out].slots == 0):
            found.append(Placement(out, "global"))
        elif out in handed:
            found.append(Placement(out, "relay" if handed[out].kind == "relay" else "workspace"))
        elif others or out in structure.nexts:
            found.append(Placement(out, "ub" if structure.unit(out) == "vector" else "l0c"))
    return tuple(found)


def options(tiling: Tiling, stages: tuple[str, ...], limits: Limits, name: str = "kernel") -> Iterator[Realized]:
    """All structurally legal kernels of the stages, cheapest estimate first; memory is not looked at."""
    found: list[Realized] = []
    for grid, loops in assignments(tiling, stages):
        structure = Structure(tiling, stages, grid, loops)
        if next(structure_refusals(structure), None):
            continue
        kernel = default_kernel(structure, name, limits)
        if any(True for rule in KERNEL_RULES for _ in rule(structure, kernel, limits)):
            continue
        found.append(Realized(kernel, structure, estimate(structure, kernel)))
        if kernel.grid:
            lasting = replace(kernel, persistent=True)
            if not any(True for rule in KERNEL_RULES for _ in rule(structure, lasting, limits)):
                found.append(Realized(lasting, structure, estimate(structure, lasting)))
    yield from sorted(found, key=lambda r: (r.cost.us, r.kernel.persistent, r.kernel.grid, r.kernel.loops))


def realize(tiling: Tiling, stages: tuple[str, ...], limits: Limits, name: str = "kernel") -> Realized | None:
    """The cheapest kernel that also fits the memories; None if there is none (`why_not` tells why)."""
    for option in options(tiling, stages, limits, name):
        if not any(True for _ in memory_fits(option.structure, option.kernel, limits)):
            return option
    return None


def why_not(tiling: Tiling, stages: tuple[str, ...], limits: Limits) -> list[Refusal]:
    """What forbids the stages to share a kernel: the refusals of the way to spread them that breaks the fewest rules."""
    tried: list[list[Refusal]] = []
    for grid, loops in assignments(tiling, stages):
        structure = Structure(tiling, stages, grid, loops)
        refusals = list(structure_refusals(structure))
        if not refusals:
            refusals = list(kernel_refusals(structure, default_kernel(structure, "kernel", limits), limits))
        tried.append(list(dict.fromkeys(refusals)))
    return min(tried, key=len, default=[])
