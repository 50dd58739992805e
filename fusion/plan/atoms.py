"""What the planner moves around as one piece: single stages, and the stages of each scan."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import networkx as nx

from fusion.cost.host import stages_us
from fusion.device import Device
from fusion.graph import StageGraph
from fusion.plan.hosting import may_run_on_host

AtomSet = frozenset[str]


@dataclass(frozen=True)
class Atoms:
    """The atoms of a graph by the name of their first stage, in graph order."""

    graph: StageGraph
    device: Device | None = None

    @cached_property
    def stages(self) -> dict[str, tuple[str, ...]]:
        """The stages of every atom."""
        groups = self.graph.scan_groups()
        grouped = {s for g in groups for s in g}
        atoms = {g[0]: g for g in groups} | {s.name: (s.name,) for s in self.graph.stages if s.name not in grouped}
        return {s.name: atoms[s.name] for s in self.graph.stages if s.name in atoms}

    @cached_property
    def order(self) -> nx.DiGraph[str]:
        """Which atoms feed which."""
        owner = {s: a for a, stages in self.stages.items() for s in stages}
        g: nx.DiGraph[str] = nx.DiGraph()
        g.add_nodes_from(self.stages)
        g.add_edges_from((owner[u], owner[v]) for u, v in self.graph.graph.edges if owner[u] != owner[v])
        return g

    @cached_property
    def dims(self) -> dict[str, frozenset[str]]:
        """The dims of every atom's stages."""
        return {a: frozenset(d for s in stages for d in self.graph.stage_dims(s)) for a, stages in self.stages.items()}

    @cached_property
    def movable(self) -> AtomSet:
        """Atoms that the host may run instead."""
        return frozenset(a for a, stages in self.stages.items() if may_run_on_host(self.graph, stages[0]))

    def stages_of(self, atoms: AtomSet) -> tuple[str, ...]:
        """All stages of a set, in graph order."""
        inside = {s for a in atoms for s in self.stages[a]}
        return tuple(s.name for s in self.graph.stages if s.name in inside)

    def splits(self, atoms: AtomSet) -> list[tuple[AtomSet, tuple[str, ...], float]]:
        """Ways to leave atoms of a set to the host: what stays, the host's stages and their microseconds."""
        found: list[tuple[AtomSet, tuple[str, ...], float]] = []
        for moved in self._subsets(atoms & self.movable):
            if rest := atoms - moved:
                found.append((rest, *self._hosted(moved)))
        return found

    def _subsets(self, movable: AtomSet) -> list[AtomSet]:
        if movable not in self._known_subsets:
            names = sorted(movable)
            sizes = range(len(names) + 1)
            self._known_subsets[movable] = [frozenset(c) for n in sizes for c in itertools.combinations(names, n)]
        return self._known_subsets[movable]

    def _hosted(self, moved: AtomSet) -> tuple[tuple[str, ...], float]:
        if moved not in self._known_hosted:
            stages = self.stages_of(moved)
            self._known_hosted[moved] = (stages, self.host_us(stages))
        return self._known_hosted[moved]

    def host_us(self, stages: tuple[str, ...]) -> float:
        """Microseconds that the host takes for stages."""
        return sum(self._host_costs[s] for s in stages)

    @cached_property
    def _host_costs(self) -> dict[str, float]:
        return {s: stages_us(self.graph, (s,), self.device) for s in self.stages_of(self.movable)}

    @cached_property
    def _known_subsets(self) -> dict[AtomSet, list[AtomSet]]:
        return {}

    @cached_property
    def _known_hosted(self) -> dict[AtomSet, tuple[tuple[str, ...], float]]:
        return {}
