"""retain-in-ub: a Vector stage reads the fp32 value that is still in UB, not the rounded one that the Cube gets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from fusion.graph import Op, Stage, StageGraph
from fusion.passes import PassResult, PlanPass
from fusion.passes.options import chosen
from fusion.passes.rebase import rebase
from fusion.plan.types import Plan, Refusal


@dataclass(frozen=True)
class ReadBack:
    """`wide = cast(rounded)` in stage `reader`, where `rounded = cast(kept)` in stage `maker`, which the Cube reads too."""

    kept: str
    rounded: str
    wide: str
    maker: str
    reader: str


@dataclass(frozen=True)
class RetainInUb(PlanPass):
    """Where a Vector stage widens a value that another one rounded for the Cube, it reads the value from before the rounding instead.

    Before: softmax: p_cast = cast(p) as float16        ds: wide = cast(p_cast) as float32; ds = wide * dp
    After:  softmax: p_cast = cast(p) as float16        ds: ds = p * dp                             p stays in UB

    Options: `values` limits it to some of the rounded values (`p_cast`).
    Refuses when: the stages are in different kernels, they do not share the tile between the Vector cores by the same dim, or UB is full.
    Source: cast(cast(p)) = p in exact arithmetic; in fp16 it has a relative error of up to 2^-11.
    """

    name: ClassVar[str] = "retain-in-ub"
    values: str = ""

    def apply(self, artefact: Plan) -> PassResult[Plan]:
        plan, refusals = artefact, list[Refusal]()
        found = tuple(read_backs(artefact.graph))
        wanted = chosen(self.values, dict.fromkeys(r.rounded for r in found), "value that is read back:")
        for r in (r for r in found if r.rounded in wanted):
            result = _retain(plan, r)
            plan = result.artefact
            refusals += result.refusals
        return PassResult(plan, plan != artefact, tuple(refusals))


def read_backs(graph: StageGraph) -> Iterator[ReadBack]:
    """All values that are rounded for the Cube in one Vector stage and widened in another."""
    made = {op.out: (s, op) for s in graph.stages for op in s.body}
    for stage in (s for s in graph.stages if s.unit == "vector"):
        for op in (o for o in stage.body if o.fn == "cast" and o.reads and graph.value(o.out).dtype == "float32"):
            maker, source = made.get(op.reads[0], (stage, op))
            if maker.name == stage.name or maker.unit != "vector" or source.fn != "cast" or not source.reads:
                continue
            kept = graph.value(source.reads[0])
            for_cube = any(graph.stage(r).unit == "cube" for r in graph.readers(source.out))
            if for_cube and kept.dtype == "float32" and kept.name in maker.writes:
                yield ReadBack(kept.name, source.out, op.out, maker.name, stage.name)


def _retain(plan: Plan, r: ReadBack) -> PassResult[Plan]:
    maker, reader = plan.kernel_of(r.maker), plan.kernel_of(r.reader)
    if maker is None or reader is None or maker.name != reader.name:
        owners = [k.name if k else "the host" for k in (maker, reader)]
        why = f"{r.kept} is made by stage {r.maker} in {owners[0]} and needed in {owners[1]}: UB does not outlive a kernel"
        return PassResult(plan, False, (Refusal("same-kernel", r.reader, why),))
    return rebase(plan, rewritten(plan.graph, r))


def rewritten(graph: StageGraph, r: ReadBack) -> StageGraph:
    """The graph with the value before the rounding read in place of the widened one."""
    leaves = graph.value(r.wide).role == "output" or any(True for _ in graph.readers(r.wide))
    return graph.with_stages(_without(s, r, leaves) if s.name == r.reader else s for s in graph.stages)


def _without(stage: Stage, r: ReadBack, leaves: bool) -> Stage:
    if leaves:  # others read the widened value: it stays, as a copy
        return replace(stage, body=tuple(Op("copy", op.out, (r.kept,)) if op.out == r.wide else op for op in stage.body))
    body = (replace(op, args=tuple(r.kept if a == r.wide else a for a in op.args)) for op in stage.body if op.out != r.wide)
    return replace(stage, body=tuple(body))
