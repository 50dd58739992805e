"""StageGraph: an operator as stages over named dims, with the networkx graph of who feeds whom."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import networkx as nx

from fusion.errors import FusionError, did_you_mean
from fusion.graph.slices import Rows, Slice, find_rows, find_silent, find_slices
from fusion.graph.types import Carry, Dim, Op, Stage, Value


@dataclass(frozen=True)
class StageGraph:
    """An operator. Immutable; `verify` (see verify.py) lists what must hold, and the builder checks it.

    Values are kept in one order, whatever order they come in: inputs, states, then as the stages assign them. Intermediates that no
    stage assigns any more are dropped.
    """

    name: str
    dims: tuple[Dim, ...]
    values: tuple[Value, ...]
    stages: tuple[Stage, ...]
    carries: tuple[Carry, ...] = ()

    def __post_init__(self) -> None:
        written = {out: i for i, out in enumerate(out for s in self.stages for out in s.writes)}
        states = {c.state: i for i, c in enumerate(self.carries)}

        def place(v: Value) -> tuple[int, int]:
            return (0, 0) if v.role == "input" else (1, states[v.name]) if v.name in states else (2, written.get(v.name, len(written)))

        kept = [v for v in self.values if v.role != "intermediate" or v.name in written or v.name in states]
        object.__setattr__(self, "values", tuple(sorted(kept, key=place)))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, self.dims, self.values, self.stages, self.carries))

    @cached_property
    def _dims(self) -> dict[str, Dim]:
        return {d.name: d for d in self.dims}

    @cached_property
    def _values(self) -> dict[str, Value]:
        return {v.name: v for v in self.values}

    @cached_property
    def _stages(self) -> dict[str, Stage]:
        return {s.name: s for s in self.stages}

    @cached_property
    def _producers(self) -> dict[str, str]:
        return {out: s.name for s in self.stages for out in s.writes}

    @cached_property
    def _readers(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for s in self.stages:
            for r in self.stage_reads(s.name):
                found.setdefault(r, []).append(s.name)
        return {v: tuple(names) for v, names in found.items()}

    @cached_property
    def carry_of(self) -> dict[str, Carry]:
        """Carries by the name of their state."""
        return {c.state: c for c in self.carries}

    def dim(self, name: str) -> Dim:
        if name not in self._dims:
            raise FusionError(f"no dim {name!r} in {self.name}", remedy=did_you_mean(name, self._dims))
        return self._dims[name]

    def value(self, name: str) -> Value:
        if name not in self._values:
            raise FusionError(f"no value {name!r} in {self.name}", remedy=did_you_mean(name, self._values))
        return self._values[name]

    def stage(self, name: str) -> Stage:
        if name not in self._stages:
            raise FusionError(f"no stage {name!r} in {self.name}", remedy=did_you_mean(name, self._stages))
        return self._stages[name]

    def size(self, dims: Iterable[str]) -> int:
        """Number of elements over the dims."""
        return math.prod(self.dim(d).size for d in dims)

    def producer(self, value: str) -> str | None:
        """The stage that writes the value; None for an input or a state."""
        return self._producers.get(value)

    def readers(self, value: str) -> tuple[str, ...]:
        """The stages that read the value from outside of themselves, in graph order."""
        return self._readers.get(value, ())

    def stage_reads(self, name: str) -> tuple[str, ...]:
        """Values a stage takes from outside, a state's initial value included where the state is first read."""
        reads: list[str] = []
        for r in self.stage(name).reads:
            carry = self.carry_of.get(r)
            reads.append(r)
            if carry and isinstance(carry.init, str):
                reads.append(carry.init)
        return tuple(dict.fromkeys(reads))

    @property
    def inputs(self) -> tuple[Value, ...]:
        return tuple(v for v in self.values if v.role == "input")

    @property
    def outputs(self) -> tuple[Value, ...]:
        return tuple(v for v in self.values if v.role == "output")

    @cached_property
    def slices(self) -> dict[str, Slice]:
        """Gathers that are plain addressing, by the value that they give."""
        return {out: part for out, part in find_slices(self).items() if out not in self.rows}

    @cached_property
    def rows(self) -> dict[str, Rows]:
        """Gathers of rows that data names, by the value that they give."""
        return find_rows(self)

    @cached_property
    def silent(self) -> frozenset[str]:
        """Values that only say where slices are, or of which only slices are used."""
        return find_silent(self, self.slices, self.rows)

    def op_dims(self, op: Op) -> tuple[str, ...]:
        """All dims an operation runs over: those of its operands, then those of its result that are new."""
        found = self._op_dims.get(op.out)
        if found is None:
            reads = () if op.fn == "gather" else op.reads
            dims = dict.fromkeys(d for a in reads for d in self.value(a).dims)
            found = self._op_dims[op.out] = tuple(dims | dict.fromkeys(self.value(op.out).dims))
        return found

    @cached_property
    def _op_dims(self) -> dict[str, tuple[str, ...]]:
        return {}

    def stage_dims(self, name: str) -> frozenset[str]:
        """The iteration space of a stage."""
        if name not in self._stage_dims:
            self._stage_dims[name] = frozenset(d for op in self.stage(name).body if op.out not in self.silent for d in self.op_dims(op))
        return self._stage_dims[name]

    @cached_property
    def _stage_dims(self) -> dict[str, frozenset[str]]:
        return {}

    @cached_property
    def graph(self) -> nx.DiGraph[str]:
        """Stages as nodes; an edge for every value that one stage hands to another (`values`) or that a host step orders (`after`)."""
        g: nx.DiGraph[str] = nx.DiGraph()
        for s in self.stages:
            g.add_node(s.name, unit=s.unit)
        for s in self.stages:
            for r in self.stage_reads(s.name):
                self._add_edge(g, self.producer(r), s.name, r)
                if self._values[r].role == "input":
                    for output in self._values[r].after:
                        self._add_edge(g, self.producer(output), s.name, f"host:{output}")
        return g

    @staticmethod
    def _add_edge(g: nx.DiGraph[str], source: str | None, target: str, value: str) -> None:
        if source is None or source == target:
            return
        values = (*g.edges[source, target]["values"], value) if g.has_edge(source, target) else (value,)
        g.add_edge(source, target, values=tuple(dict.fromkeys(values)))

    def host_edges(self) -> tuple[tuple[str, str, str], ...]:
        """(producer, reader, output) triples whose reader needs an input that exists only after the output reached the host."""
        found = [(u, v, x.removeprefix("host:")) for u, v, d in self.graph.edges(data=True) for x in d["values"] if x.startswith("host:")]
        return tuple(sorted(found))

    def scan_groups(self) -> tuple[tuple[str, ...], ...]:
        """Stages that step along one dim together, by scan, loop and connectedness, in graph order."""
        return self._scan_groups

    @cached_property
    def _scan_groups(self) -> tuple[tuple[str, ...], ...]:
        linked: nx.Graph[str] = nx.Graph()
        linked.add_nodes_from(s.name for s in self.stages if s.scan)
        for s in (self._stages[n] for n in list(linked)):
            for r in self.stage(s.name).reads:
                source = self.producer(self.carry_of[r].next) if r in self.carry_of else self.producer(r)
                if source and (self._stages[source].scan, self._stages[source].loop) == (s.scan, s.loop):
                    linked.add_edge(source, s.name)
        order = {s.name: i for i, s in enumerate(self.stages)}
        groups = [tuple(sorted(c, key=order.__getitem__)) for c in nx.connected_components(linked)]
        return tuple(sorted(groups, key=lambda group: order[group[0]]))

    @cached_property
    def phases(self) -> dict[str, int]:
        """The launch phase of every stage, from 0: an input that exists only after an output starts the next one."""
        found: dict[str, int] = {}
        for name in nx.lexicographical_topological_sort(self.graph):
            edges = [(u, d["values"]) for u, _, d in self.graph.in_edges(name, data=True)]
            found[name] = max((found[u] + any(v.startswith("host:") for v in values) for u, values in edges), default=0)
        return found

    @cached_property
    def before_host(self) -> frozenset[str]:
        """Stages that must have run before the caller can bring an input that exists only after an output."""
        ends = {u for u, _, _ in self.host_edges()}
        return frozenset(ends.union(*(nx.ancestors(self.graph, e) for e in ends)))

    @cached_property
    def saved(self) -> tuple[str, ...]:
        """Outputs that a later phase takes up again, as the caller has them."""
        phase = self.phases
        made = {v.name: self.producer(v.name) for v in self.outputs}
        return tuple(o for o, p in made.items() if p is not None and any(phase[r] > phase[p] for r in self.readers(o)))

    @cached_property
    def runs(self) -> nx.DiGraph[tuple[str, ...]]:
        """What runs as one piece, and in which order: the stages of a scan together, every other stage alone."""
        member = {name: group for group in self.scan_groups() for name in group}
        g: nx.DiGraph[tuple[str, ...]] = nx.DiGraph()
        g.add_nodes_from(member.get(s.name, (s.name,)) for s in self.stages)
        edges = ((member.get(u, (u,)), member.get(v, (v,))) for u, v in self.graph.edges)
        g.add_edges_from((u, v) for u, v in edges if u != v)
        return g

    def with_stages(self, stages: Iterable[Stage], values: Iterable[Value] | None = None) -> StageGraph:
        """The same operator with other stages (and values): what a graph pass returns."""
        return replace(self, stages=tuple(stages), values=self.values if values is None else tuple(values))

    def __str__(self) -> str:
        from fusion.graph.text import to_text

        return to_text(self)
