"""What must hold of a stage graph: a list of named invariants, each a function that yields what breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import networkx as nx

from fusion.errors import FusionError
from fusion.graph import typing_rules
from fusion.graph.ops import OPS
from fusion.graph.scans import SCAN_INVARIANTS
from fusion.graph.stagegraph import StageGraph
from fusion.graph.types import Op, Stage

Invariant = Callable[[StageGraph], Iterator[str]]


def names_differ(graph: StageGraph) -> Iterator[str]:
    for what, names in (
        ("stages", [s.name for s in graph.stages]),
        ("dims", [d.name for d in graph.dims]),
        ("values", [v.name for v in graph.values]),
        ("states", [c.state for c in graph.carries]),
    ):
        yield from (f"two {what} are called {n}" for n in sorted({n for n in names if names.count(n) > 1}))


def dims_are_declared(graph: StageGraph) -> Iterator[str]:
    known = {d.name for d in graph.dims}
    for v in graph.values:
        yield from (f"value {v.name} uses the undeclared dim {d}" for d in v.dims if d not in known)
    yield from (f"stage {s.name} scans the undeclared dim {s.scan}" for s in graph.stages if s.scan and s.scan not in known)


def single_assignment(graph: StageGraph) -> Iterator[str]:
    seen: set[str] = {v.name for v in graph.inputs} | set(graph.carry_of)
    for s in graph.stages:
        for out in s.writes:
            if out in seen:
                yield f"stage {s.name} assigns {out}, which has a value already"
            seen.add(out)


def reads_follow_writes(graph: StageGraph) -> Iterator[str]:
    known = {v.name for v in graph.inputs} | set(graph.carry_of)
    for s in graph.stages:
        for op in s.body:
            yield from (f"stage {s.name} reads {r} before it is assigned" for r in op.reads if r not in known)
            known.add(op.out)


def values_are_typed(graph: StageGraph) -> Iterator[str]:
    """Every result has the dims (in any order) and dtype that its operation gives it."""
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


def _accumulates(graph: StageGraph, stage: Stage, op: Op) -> bool:
    """Is op a sum of two contractions of its own Cube stage that nothing else reads: one accumulator?"""
    parts = {o.out: o for o in stage.body}
    own = all(isinstance(a, str) and a in parts and parts[a].fn in ("contract", "add") for a in op.args)
    uses = [r for s in graph.stages for o in s.body for r in o.args]
    return op.fn == "add" and own and len(set(op.args)) == 2 and all(uses.count(a) == 1 for a in op.args)


def units_run_what_they_can(graph: StageGraph) -> Iterator[str]:
    for s in graph.stages:
        for op in s.body:
            cube_op = OPS[op.fn].form == "contract" or (s.unit == "cube" and _accumulates(graph, s, op))
            if cube_op != (s.unit == "cube"):
                yield f"stage {s.name} is {s.unit}, {op.out} = {op.fn} needs {'cube' if cube_op else 'vector'}"


def acyclic(graph: StageGraph) -> Iterator[str]:
    if not nx.is_directed_acyclic_graph(graph.graph):
        cycle = [u for u, _ in nx.find_cycle(graph.graph)]
        yield "stages feed each other in a cycle: " + " -> ".join([*cycle, cycle[0]])


def outputs_are_written(graph: StageGraph) -> Iterator[str]:
    if not graph.outputs:
        yield "no value is marked as an output"
    yield from (f"output {v.name} is not assigned by any stage" for v in graph.outputs if graph.producer(v.name) is None)


def after_names_outputs(graph: StageGraph) -> Iterator[str]:
    """An input that exists after an output is no input of the stage that writes that output."""
    outputs = {v.name for v in graph.outputs}
    for v in graph.inputs:
        yield from (f"input {v.name} is said to exist after {o}, which is not an output" for o in v.after if o not in outputs)
        for o in v.after:
            if (producer := graph.producer(o)) in graph.readers(v.name):
                yield f"stage {producer} reads {v.name}, which exists only after {o}, which it writes"


INVARIANTS: tuple[Invariant, ...] = (
    names_differ,
    dims_are_declared,
    single_assignment,
    reads_follow_writes,
    values_are_typed,
    units_run_what_they_can,
    outputs_are_written,
    after_names_outputs,
    acyclic,
    *SCAN_INVARIANTS,
)


def verify(graph: StageGraph) -> None:
    """Raises FusionError naming the first invariant that fails and what breaks it."""
    for invariant in INVARIANTS:
        for problem in invariant(graph):
            raise FusionError(f"{problem} (invariant {invariant.__name__.replace('_', '-')})", where=f"graph {graph.name}")
