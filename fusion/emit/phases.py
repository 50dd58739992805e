"""Which launches belong to which phase: an input that exists only after an output starts a new one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fusion.graph import StageGraph
from fusion.plan.types import Kernel, Plan


@dataclass(frozen=True)
class Phases:
    """The phase, from 0, of every kernel, host stage and input of a plan."""

    plan: Plan

    @property
    def graph(self) -> StageGraph:
        return self.plan.graph

    @cached_property
    def stage(self) -> dict[str, int]:
        """Phases by stage; the stages of a kernel share theirs."""
        found: dict[str, int] = {}
        units = [k.stages for k in self.plan.kernels] + [(s,) for s in self.host_stages]
        for stages in units:
            number = max(self._needs(s, found) for s in stages)
            found.update(dict.fromkeys(stages, number))
        for stages in reversed(units):
            found.update(dict.fromkeys(stages, self._latest(stages, found)))
        return found

    def _latest(self, stages: tuple[str, ...], found: dict[str, int]) -> int:
        """What only a later phase needs runs there, so that nothing but outputs is kept in between."""
        makes = [v for s in stages for v in self.graph.stage(s).writes]
        readers = [found[r] for v in makes for r in self.graph.readers(v) if r in found and r not in stages]
        own = any(self.graph.value(v).role == "output" for v in makes)
        return found[stages[0]] if own or not readers else min(readers)

    @cached_property
    def host_stages(self) -> tuple[str, ...]:
        """Host stages in graph order."""
        return tuple(s.name for s in self.graph.stages if s.name in self.plan.host_stages)

    def _needs(self, stage: str, found: dict[str, int]) -> int:
        before = [0]
        for u in self.graph.graph.predecessors(stage):
            if u in found:
                waits = any(v.startswith("host:") for v in self.graph.graph.edges[u, stage]["values"])
                before.append(found[u] + waits)
        return max(before)

    def input(self, name: str) -> int:
        """The phase at whose start the caller has the input."""
        sources = [self.graph.producer(o) for o in self.graph.value(name).after]
        return max((self.stage[s] + 1 for s in sources if s in self.stage), default=0)

    @property
    def count(self) -> int:
        return max(self.stage.values(), default=0) + 1

    def kernels(self, phase: int) -> tuple[Kernel, ...]:
        return tuple(k for k in self.plan.kernels if self.stage[k.stages[0]] == phase)

    def on_host(self, phase: int) -> tuple[str, ...]:
        return tuple(s for s in self.host_stages if self.stage[s] == phase)

    def names(self) -> tuple[str, ...]:
        """What the wrapper's functions are called."""
        if self.count == 1:
            return (self.graph.name,)
        return ("forward", "backward") if self.count == 2 else tuple(f"phase_{i + 1}" for i in range(self.count))
