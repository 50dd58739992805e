"""What must hold of a stage graph: a list of named invariants, each a function that yields what breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import networkx as nx

from fusion.errors import FusionError
from fusion.graph import typing_rules
from fusion.graph.ops import OPS
from fusion.graph.stagegraph import StageGraph

Invariant = Callable[[StageGraph], Iterator[str]]


def single_assignment(graph: StageGraph) -> Iterator[str]:
    seen: set[str] = {v.name for v in graph.inputs} | set(graph.carry_of)
    for s in graph.stages:
        for out in s.writes:
            if out in seen:
                yield f"stage {s.name} assigns {out}, which has a value already"
            seen.add(out)


def stage_names_differ(graph: StageGraph) -> Iterator[str]:
    names = [s.name for s in graph.stages]
    yield from (f"two stages are called {n}" for n in sorted({n for n in names if names.count(n) > 1}))


def acyclic(graph: StageGraph) -> Iterator[str]:
    if not nx.is_directed_acyclic_graph(graph.graph):
        cycle = [u for u, _ in nx.find_cycle(graph.graph)]
        yield "stages feed each other in a cycle: " + " -> ".join([*cycle, cycle[0]])


def values_are_typed(graph: StageGraph) -> Iterator[str]:
    """Every result has the dims (in any order, for outputs) and dtype that its operation gives it."""
    values = {v.name: v for v in graph.values}
    dims = {d.name: d for d in graph.dims}
    for s in graph.stages:
        for op in s.body:
            want = typing_rules.result(op, values, dims, f"{graph.name}.{s.name}")
            have = values.get(op.out)
            if have is None:
                yield f"stage {s.name} assigns {op.out}, which is not declared"
            elif sorted(have.dims) != sorted(want.dims) or have.dtype != want.dtype:
                yield f"{op.out} is declared {have.dtype}[{' '.join(have.dims)}], {op.fn} gives {want.dtype}[{' '.join(want.dims)}]"


def reads_follow_writes(graph: StageGraph) -> Iterator[str]:
    known = {v.name for v in graph.inputs} | set(graph.carry_of)
    for s in graph.stages:
        for op in s.body:
            yield from (f"stage {s.name} reads {r} before it is assigned" for r in op.reads if r not in known)
            known.add(op.out)


def units_run_what_they_can(graph: StageGraph) -> Iterator[str]:
    for s in graph.stages:
        for op in s.body:
            cube_op = OPS[op.fn].form == "contract"
            if cube_op != (s.unit == "cube"):
                yield f"stage {s.name} is {s.unit}, {op.out} = {op.fn} needs {'cube' if cube_op else 'vector'}"


def outputs_are_written(graph: StageGraph) -> Iterator[str]:
    if not graph.outputs:
        yield "no value is marked as an output"
    yield from (f"output {v.name} is not assigned by any stage" for v in graph.outputs if graph.producer(v.name) is None)


def carries_are_closed(graph: StageGraph) -> Iterator[str]:
    for c in graph.carries:
        source = graph.producer(c.next) if c.next else None
        if source is None:
            yield f"state {c.state} is never carried to the next step"
        elif graph.stage(source).scan != c.along:
            yield f"state {c.state} is carried by {c.next}, which is not in the scan along {c.along}"
        elif sorted(graph.value(c.state).dims) != sorted(graph.value(c.next).dims):
            yield f"state {c.state} and {c.next} have different dims"


def scans_end_well(graph: StageGraph) -> Iterator[str]:
    """What leaves a scan either has the scan's dim or is what a state is carried to."""
    final = {c.next for c in graph.carries}
    for s in graph.stages:
        for out in s.writes if s.scan else ():
            outside = [r for r in graph.readers(out) if graph.stage(r).scan != s.scan] + (
                ["the caller"] if graph.value(out).role == "output" else []
            )
            if outside and s.scan not in graph.value(out).dims and out not in final:
                yield f"{out} of the scan along {s.scan} is read by {outside[0]}, but holds for one step only"


def after_names_outputs(graph: StageGraph) -> Iterator[str]:
    outputs = {v.name for v in graph.outputs}
    for v in graph.inputs:
        yield from (f"input {v.name} is said to exist after {o}, which is not an output" for o in v.after if o not in outputs)


INVARIANTS: tuple[Invariant, ...] = (
    stage_names_differ,
    single_assignment,
    reads_follow_writes,
    values_are_typed,
    units_run_what_they_can,
    carries_are_closed,
    acyclic,
    outputs_are_written,
    scans_end_well,
    after_names_outputs,
)


def verify(graph: StageGraph) -> None:
    """Raises FusionError naming the first invariant that fails and what breaks it."""
    for invariant in INVARIANTS:
        for problem in invariant(graph):
            raise FusionError(f"{problem} (invariant {invariant.__name__.replace('_', '-')})", where=f"graph {graph.name}")
