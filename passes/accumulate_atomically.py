"""accumulate-atomically: blocks add their parts of a sum in GM, instead of one block looping over all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from fusion.graph import StageGraph
from fusion.graph.ops import OPS
from fusion.passes import PassResult, PlanPass
from fusion.passes.check import limits_of, plan_problems, structure_of, tiling_of
from fusion.passes.options import chosen
from fusion.passes.rebase import cost_us
from fusion.plan.realize import assignments, default_kernel, placed
from fusion.plan.structure import Structure
from fusion.plan.types import Kernel, Plan, Refusal


@dataclass(frozen=True)
class AccumulateAtomically(PlanPass):
    """A sum that a block completes in a loop is spread over blocks that add to fp32 in GM; the host zeroes it, and casts the result.

    Before: kernel dv + cast_dv: grid n k, loop q: dv += p^T dO;  dV = cast(dv)
    After:  kernel dv: grid n q k: atomic add of p^T dO to dv     host: dv = 0 before, dV = cast(dv) after

    Options: `values` limits it to some sums (`dv_acc+dk_acc`), also where the estimate says that it is slower; `host=false` leaves the
    cast to a later kernel, if there is one.
    Refuses when: the sum is read in the kernel by more than a last cast, the kernel's other stages allow no such grid (with the rule that
    forbids the closest one), or, without `values`, it would not be faster.
    Source: addition is associative; fp32 atomics make the order, and so the last bits, differ from run to run.
    """

    name: ClassVar[str] = "accumulate-atomically"
    values: str = ""
    host: bool = True

    def apply(self, artefact: Plan) -> PassResult[Plan]:
        graph, plan, refusals = artefact.graph, artefact, list[Refusal]()
        for value in chosen(self.values, sums(graph), "sum"):
            result = _accumulate(plan, value, self.host, forced=bool(self.values))
            plan = result.artefact
            refusals += result.refusals
        return PassResult(plan, plan != artefact, tuple(refusals))


def sums(graph: StageGraph) -> tuple[str, ...]:
    """fp32 sums, contractions and sums of contractions that other stages or the caller read, outside of scans."""
    ops = [op for s in graph.stages if not s.scan for op in s.body if op.fn in ("sum", "contract") or (s.unit == "cube" and op.fn == "add")]
    values = [graph.value(op.out) for op in ops]
    return tuple(v.name for v in values if v.dtype == "float32" and (graph.readers(v.name) or v.role == "output"))


def movable(graph: StageGraph, stage: str) -> bool:
    """Whether the stage only casts or scales results for the caller: what the host may do as well."""
    s = graph.stage(stage)
    plain = s.unit == "vector" and not s.scan and all(OPS[op.fn].form == "elementwise" for op in s.body)
    return plain and not any(r != stage for out in s.writes for r in graph.readers(out))


def _accumulate(plan: Plan, value: str, host: bool, forced: bool) -> PassResult[Plan]:
    graph = plan.graph
    kernel = plan.kernel_of(graph.producer(value) or "")
    if kernel is None or not _loops(plan, kernel, value):
        return PassResult(plan, False)
    for r in (r for r in graph.readers(value) if r in kernel.stages and not movable(graph, r)):
        why = f"reads {value}, which is whole only when all blocks have added to it: after the launch"
        return PassResult(plan, False, (Refusal("grid-sum-is-final", f"{kernel.name}.{r}", why),))
    known = set(plan_problems(plan))
    tried = [(tuple(r for r in plan_problems(p) if r not in known), p) for p in _spread(plan, kernel, value, host)]
    if not tried:
        why = f"{value} is summed over one tile only: there is nothing to spread over blocks"
        return PassResult(plan, False, (Refusal("dims-are-placed", kernel.name, why),))
    refusals, best = min(tried, key=lambda t: (len(t[0]), cost_us(t[1]) if not t[0] else 0.0))
    if not refusals and not forced and cost_us(best) >= cost_us(plan):
        why = f"with atomic additions to {value} the plan takes {cost_us(best):.1f} us, with a loop {cost_us(plan):.1f} us (estimate)"
        refusals = (Refusal("worth-it", kernel.name, why),)
    return PassResult(plan, False, refusals) if refusals else PassResult(best, True)


def _loops(plan: Plan, kernel: Kernel, value: str) -> bool:
    """Whether the kernel completes the value in its loops."""
    s = structure_of(plan, kernel)
    return bool(s.accumulates(*s.made[value])) and not s.atomic(value) and s.accumulator.get(value, value) == value


def _spread(plan: Plan, kernel: Kernel, value: str, host: bool) -> Iterator[Plan]:
    """Plans in which blocks add the value up; the last casts of it, and of what is then added up too, run on the host."""
    tiling, graph = tiling_of(plan), plan.graph
    stages = tuple(s.name for s in graph.stages if s.name in kernel.stages and s.name not in graph.readers(value))
    for way in assignments(tiling, stages):
        s = Structure(tiling, stages, way.grid, way.loops)
        added = [out for out in s.made if s.atomic(out)]
        if value not in added:
            continue
        casts = [r for out in added for r in graph.readers(out) if movable(graph, r) and (r in kernel.stages or (host and out == value))]
        moved = frozenset(casts) - set(plan.host_stages)
        left = Structure(tiling, tuple(n for n in stages if n not in moved), way.grid, way.loops)
        yield _replaced(plan, placed(left, default_kernel(left, kernel.name, limits_of(plan))), moved)


def _replaced(plan: Plan, kernel: Kernel, moved: frozenset[str]) -> Plan:
    """The plan with the new kernel, the moved stages on the host, and no kernel left empty."""
    kernels = [kernel if k.name == kernel.name else _without(plan, k, moved) for k in plan.kernels]
    host = tuple(s.name for s in plan.graph.stages if s.name in plan.host_stages or s.name in moved)
    return replace(plan, kernels=tuple(k for k in kernels if k.stages), host_stages=host)


def _without(plan: Plan, kernel: Kernel, moved: frozenset[str]) -> Kernel:
    left = tuple(s for s in kernel.stages if s not in moved)
    if not left or left == kernel.stages:
        return replace(kernel, stages=left)
    s = structure_of(plan, replace(kernel, stages=left))
    return replace(placed(s, default_kernel(s, kernel.name, limits_of(plan))), persistent=kernel.persistent)
