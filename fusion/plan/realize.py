"""From a set of stages to the cheapest legal kernel: grid and loops, slots, free handoffs, threads, persistence."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from fusion.cost.model import KernelCost, estimate
from fusion.plan.device import Limits
from fusion.plan.masks import conditions
from fusion.plan.prefilter import MAX_LOOPS, Assignment
from fusion.plan.rules import (
    DEFAULT_RULES,
    LASTING_RULES,
    SET_RULES,
    SIZE_RULES,
    STRUCTURE_RULES,
    cube_tiles_fit,
    kernel_refusals,
    masked_tiles_are_skipped,
    memory_fits,
    ordered_by_cycles,
    structure_refusals,
)
from fusion.plan.structure import Structure
from fusion.plan.tiling import Tiling
from fusion.plan.trips import most_visited
from fusion.plan.types import Handoff, Kernel, Placement, Refusal
from fusion.rules import memory


@dataclass(frozen=True)
class Realized:
    """A legal kernel with its estimated cost; `plain` is the same with one block a task, for a persistent one that does not fit."""

    kernel: Kernel
    structure: Structure
    cost: KernelCost
    plain: Kernel | None = None

    def otherwise(self, limits: Limits) -> Realized | None:
        """The kernel to take if this one does not fit."""
        return Realized(self.plain, self.structure, estimate(self.structure, self.plain, limits.device)) if self.plain else None


def assignments(tiling: Tiling, stages: tuple[str, ...]) -> list[Assignment]:
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
    choices = itertools.chain.from_iterable(itertools.combinations(free, n) for n in range(min(len(free), MAX_LOOPS) + 1))
    return [Assignment(tuple(d for d in dims if d not in loops), loops) for loops in choices]


def default_kernel(structure: Structure, name: str, limits: Limits) -> Kernel:
    """The kernel with the compiler-safe choice for every handoff."""
    threads = 1 if structure.split is None else 2
    ordered = ordered_by_cycles(structure) if structure.loops else frozenset[str]()
    short = not structure.loops or most_visited(structure) <= limits.flag_depth
    handoffs = tuple(safe(structure, h, h.value in ordered, short) for h in structure.handoffs)
    return Kernel(name, structure.order, structure.grid, structure.loops, threads=threads, handoffs=handoffs)


def safe(structure: Structure, handoff: Handoff, ordered: bool, short: bool) -> Handoff:
    """One slot where a cycle orders it, else a slot for every iteration if a flag can count them, else a free handoff."""
    if handoff.level != "body" or not structure.loops or ordered:
        return handoff
    return replace(handoff, slots=0) if short else replace(handoff, free=True)


def placed(structure: Structure, kernel: Kernel) -> Kernel:
    """The kernel with the place of every value written down."""
    return replace(kernel, placements=placements(structure, kernel.handoffs))


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


def legal_structures(tiling: Tiling, stages: tuple[str, ...], ways: Iterable[Assignment] | None = None) -> list[Structure]:
    """The ways to spread the dims that break no structural rule. With `ways` from a prefilter, PAIR_RULES and SIZE_RULES hold already."""
    rules = STRUCTURE_RULES if ways is None else SET_RULES
    tried = (Structure(tiling, stages, a.grid, a.loops) for a in (assignments(tiling, stages) if ways is None else ways))
    return [s for s in tried if not any(True for rule in rules for _ in rule(s))]


@dataclass(frozen=True)
class _Defaults:
    """The kernel with default handoffs, one block a task; whether the rules about handoffs allow it; the persistent one if they do."""

    kernel: Kernel
    legal: bool
    lasting: Kernel | None


def _defaults(structure: Structure, name: str, limits: Limits) -> _Defaults:
    short = not structure.loops or most_visited(structure) <= limits.flag_depth
    key = ("defaults", name, short, structure.split is None, limits)
    found = structure.known.get(key)
    if not isinstance(found, _Defaults):
        found = structure.known[key] = _worked_out(structure, default_kernel(structure, name, limits), limits)
    return found


def _worked_out(structure: Structure, kernel: Kernel, limits: Limits) -> _Defaults:
    legal = not any(True for rule in DEFAULT_RULES for _ in rule(structure, kernel, limits))
    lasting = replace(kernel, persistent=True)
    may_last = legal and not any(True for rule in LASTING_RULES for _ in rule(structure, lasting, limits))
    return _Defaults(kernel, legal, lasting if may_last else None)


def options(structures: Iterable[Structure], limits: Limits, name: str = "kernel") -> list[Realized]:
    """A legal kernel for every structure that has one, cheapest estimate first; `sized` and `fits` are not looked at."""
    found: list[Realized] = []
    for structure in structures:
        made = _defaults(structure, name, limits)
        if not made.legal or l0c_overflows(structure, limits):
            continue
        if any(True for _ in masked_tiles_are_skipped(structure, made.kernel, limits)):
            continue
        tasks = math.prod(structure.tiling.trips(d) for d in structure.grid)
        if made.lasting and tasks > limits.cube_cores:  # starting a block for every task costs more than a loop over tasks
            found.append(Realized(made.lasting, structure, estimate(structure, made.lasting, limits.device), made.kernel))
        else:
            found.append(Realized(made.kernel, structure, estimate(structure, made.kernel, limits.device)))
    return sorted(found, key=lambda r: (r.cost.us, r.kernel.persistent, r.kernel.grid, r.kernel.loops))


def sized(tiling: Tiling, stage: str, limits: Limits) -> bool:
    """Whether the tile sizes suit a stage by itself, in whatever kernel: SIZE_RULES and the L0 memories."""
    s = Structure(tiling, (stage,), (), ())
    broken = (x for rule in SIZE_RULES for x in rule(s))
    return not any(True for _ in broken) and not any(True for _ in cube_tiles_fit(s, Kernel("", (stage,), ()), limits))


def l0c_overflows(structure: Structure, limits: Limits) -> bool:
    """Whether the accumulators alone are too much; a quick test in front of `fits`."""
    tiling = structure.tiling
    used = (memory.tile_bytes(map(tiling.tile, tiling.shape(v)), tiling.graph.value(v).itemsize) for v in structure.accumulators)
    return memory.over(sum(used), limits.l0c)


def fits(option: Realized, limits: Limits) -> bool:
    """Whether a kernel fits the on-chip memories."""
    return not any(True for _ in memory_fits(option.structure, option.kernel, limits))


def realize(tiling: Tiling, stages: tuple[str, ...], limits: Limits, name: str = "kernel") -> Realized | None:
    """The cheapest kernel that also fits the memories; None if there is none (`why_not` tells why)."""
    if not all(sized(tiling, s, limits) for s in stages):
        return None
    first = options(legal_structures(tiling, stages), limits, name)
    every = sorted([*first, *(o for f in first if (o := f.otherwise(limits)))], key=lambda o: o.cost.us)
    found = next((o for o in every if fits(o, limits)), None)
    return replace(found, kernel=placed(found.structure, found.kernel)) if found else None


def why_not(tiling: Tiling, stages: tuple[str, ...], limits: Limits) -> list[Refusal]:
    """What forbids the stages to share a kernel: the refusals of the way to spread them that breaks the fewest rules."""
    tried: list[list[Refusal]] = []
    for way in assignments(tiling, stages):
        structure = Structure(tiling, stages, way.grid, way.loops)
        refusals = list(structure_refusals(structure))
        if not refusals:
            refusals = list(kernel_refusals(structure, default_kernel(structure, f"stages {' '.join(stages)}", limits), limits))
        tried.append(list(dict.fromkeys(refusals)))
    return min(tried, key=distance, default=[])


def distance(refusals: list[Refusal]) -> tuple[bool, bool, int]:
    """How far stages are from a kernel: nearest are those that only need other sizes, farthest those whose scan is no loop."""
    rules = [r.rule for r in refusals]
    return bool(rules) and rules[0] not in ("memory-fits", "cube-tiles-fit"), "scan-is-the-loop" in rules, len(rules)
