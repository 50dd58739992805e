"""The invariants of scans: what a state is, what may leave a scan, and that a scan runs as one piece."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx

from fusion.graph.ops import OPS
from fusion.graph.stagegraph import StageGraph
from fusion.graph.types import Op, Stage


def _group_of(graph: StageGraph) -> dict[str, int]:
    """The scan group of each stage that scans."""
    return {name: i for i, group in enumerate(graph.scan_groups()) for name in group}


def carries_are_closed(graph: StageGraph) -> Iterator[str]:
    """A state is carried by a value of its scan with its dims and dtype, from an initial value that fits."""
    for c in graph.carries:
        state = graph.value(c.state)
        source = graph.producer(c.next) if c.next else None
        if source is None:
            yield f"state {c.state} is never carried to the next step"
            continue
        after = graph.value(c.next)
        if graph.stage(source).scan != c.along:
            yield f"state {c.state} is carried by {c.next}, which is not in the scan along {c.along}"
        if sorted(state.dims) != sorted(after.dims) or state.dtype != after.dtype or c.along in state.dims:
            have, want = f"{after.dtype}[{' '.join(after.dims)}]", f"{state.dtype}[{' '.join(state.dims)}]"
            yield f"state {c.state} is {want}, it is carried by {c.next}, which is {have}; both must agree and lack {c.along}"
        if isinstance(c.init, str):
            first = graph.value(c.init)
            if not set(first.dims) <= set(state.dims) or first.dtype != state.dtype:
                yield f"state {c.state} starts as {c.init}, which is {first.dtype}[{' '.join(first.dims)}]"


def states_stay_inside(graph: StageGraph) -> Iterator[str]:
    """A state is read in its own scan only, and starts from a value that was there before the scan."""
    groups = _group_of(graph)
    for c in graph.carries:
        home = groups[graph.producer(c.next) or ""]
        for reader in graph.readers(c.state):
            if groups.get(reader) != home:
                yield f"stage {reader} reads the state {c.state} outside of its scan along {c.along}"
        source = graph.producer(c.init) if isinstance(c.init, str) else None
        if source and groups.get(source) == home:
            yield f"state {c.state} starts as {c.init}, which its own scan assigns"


def _step_dependent(graph: StageGraph) -> set[str]:
    """Values of scans that a step's size may change: those made from a state or from a reduction over the step."""
    groups = _group_of(graph)
    found = set(graph.carry_of)
    for s in (s for s in graph.stages if s.scan):
        for op in s.body:
            inside = {r for r in op.reads if r in graph.carry_of or groups.get(graph.producer(r) or "") == groups[s.name]}
            if found & inside or s.scan in op.over:
                found.add(op.out)
    return found


def _leaves(graph: StageGraph, stage: Stage, out: str) -> str | None:
    """Who outside of the stage's scan reads the value."""
    groups = _group_of(graph)
    outside = [r for r in graph.readers(out) if groups.get(r) != groups[stage.name]]
    return outside[0] if outside else "the caller" if graph.value(out).role == "output" else None


def scans_end_well(graph: StageGraph) -> Iterator[str]:
    """What leaves a scan is what a state is carried to, or has the scan's dim and does not hang on the size of a step."""
    final = {c.next for c in graph.carries}
    dependent = _step_dependent(graph)
    for s in (s for s in graph.stages if s.scan):
        for out in (o for o in s.writes if o not in final):
            reader = _leaves(graph, s, out)
            if reader and s.scan not in graph.value(out).dims:
                yield f"{out} of the scan along {s.scan} is read by {reader}, but holds for one step only"
            elif reader and out in dependent and graph.dim(s.scan).step != 1:
                yield f"{out} is read by {reader}, but depends on how many indices of {s.scan} a step takes: declare {s.scan} with step=1"


def scans_index_other_dims(graph: StageGraph) -> Iterator[str]:
    """A step sees a piece of the scan's dim: it can neither be indexed nor sorted."""

    def indexed(op: Op) -> tuple[str, ...]:
        return op.over if OPS[op.fn].form in ("gather", "topk") else (op.attr,) if OPS[op.fn].form == "scatter" else ()

    for s in graph.stages:
        for op in s.body:
            if s.scan and s.scan in indexed(op):
                yield f"{op.out} = {op.fn} along {s.scan} inside of the scan along it: move it to a stage before or after"


def scans_run_as_one(graph: StageGraph) -> Iterator[str]:
    """No value leaves a scan and comes back into it by a stage outside: the graph with each scan as one node is acyclic."""
    if not nx.is_directed_acyclic_graph(graph.runs):
        cycle = ["+".join(u) for u, _ in nx.find_cycle(graph.runs)]
        yield "a scan needs what a stage outside of it makes from it: " + " -> ".join([*cycle, cycle[0]])


SCAN_INVARIANTS = (carries_are_closed, states_stay_inside, scans_end_well, scans_index_other_dims, scans_run_as_one)
