"""What holds of a graph's operations and stages whatever kernels they are put into, worked out once a graph."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from fusion.graph import Op, Stage, StageGraph
from fusion.graph.ops import OPS


@dataclass(frozen=True)
class OpFacts:
    """An operation with its stage: the dims it runs over (that of a scan too), and those of them that it sums over (a scan's own apart).

    `parts` are the contractions that a Cube operation adds up in one accumulator; any other operation stands for itself.
    """

    stage: Stage
    op: Op
    dims: frozenset[str]
    sums: frozenset[str]
    parts: tuple[Op, ...]


@dataclass(frozen=True)
class Facts:
    """Operations by the value they define, and stages by name: their place in the graph, and who feeds whom."""

    ops: dict[str, OpFacts]
    place: dict[str, int]
    before: dict[str, frozenset[str]]
    after: dict[str, frozenset[str]]
    cube: frozenset[str]
    has_scans: bool

    def in_order(self, stages: frozenset[str]) -> tuple[str, ...]:
        """Stages as a kernel runs them: Cube stages as soon as they can, Vector stages one by one, so that the units overlap."""
        if self.cube.isdisjoint(stages):
            return tuple(sorted(stages, key=self.place.__getitem__))
        waits = {s: len(self.before[s] & stages) for s in stages}
        ready = sorted((s for s, n in waits.items() if not n), key=self.place.__getitem__)
        done: list[str] = []
        while ready:
            step = [s for s in ready if s in self.cube] or ready[:1]
            done += step
            ready = [s for s in ready if s not in step]
            for s in (s for one in step for s in self.after[one] & stages):
                waits[s] -= 1
                if not waits[s]:
                    ready.append(s)
            ready.sort(key=self.place.__getitem__)
        return tuple(done)


@cache
def first_like(graph: StageGraph) -> StageGraph:
    """The first graph seen that equals this one: what is remembered by graph is then found by identity, not by comparing graphs."""
    return graph


@cache
def facts(graph: StageGraph) -> Facts:
    """The facts of a graph."""
    flow = graph.graph
    return Facts(
        {op.out: _op(graph, s, op) for s in graph.stages for op in s.body},
        {s.name: i for i, s in enumerate(graph.stages)},
        {s.name: frozenset(flow.predecessors(s.name)) for s in graph.stages},
        {s.name: frozenset(flow.successors(s.name)) for s in graph.stages},
        frozenset(s.name for s in graph.stages if s.unit == "cube"),
        bool(graph.carries),
    )


def _op(graph: StageGraph, stage: Stage, op: Op) -> OpFacts:
    parts = _parts(stage, op)
    dims = {*graph.op_dims(op), *((stage.scan,) if stage.scan else ())}
    sums = {d for p in parts if OPS[p.fn].form in ("contract", "reduce") for d in p.over}
    return OpFacts(stage, op, frozenset(dims), frozenset(sums - {stage.scan}), parts)


def _parts(stage: Stage, op: Op) -> tuple[Op, ...]:
    if stage.unit == "vector" or op.fn != "add":
        return (op,)
    by_name = {o.out: o for o in stage.body}
    return tuple(p for r in op.reads for p in _parts(stage, by_name[r]))
