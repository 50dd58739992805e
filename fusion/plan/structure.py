"""What follows from putting stages into one kernel with a given grid and loops: the level of every operation and the way of every value.

Rules (rules.py), cost and emission all read this one analysis.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

from fusion.graph import Affine, Op, Stage, StageGraph
from fusion.graph.ops import OPS
from fusion.graph.types import Carry, Unit
from fusion.plan import sharing
from fusion.plan.facts import Facts, facts
from fusion.plan.masks import Bound, bound, leaves_something, skippable
from fusion.plan.tiling import Tiling
from fusion.plan.types import Handoff, Level

SIZED = frozenset(("tiling", "bounds", "split"))
"""What depends on tile sizes; all else follows from which dims have several tiles."""


@dataclass(frozen=True)
class Structure:
    """A kernel's stages under a tiling, a grid and loops (both as dim names, outermost first). Derived facts are cached."""

    tiling: Tiling
    stages: tuple[str, ...]
    grid: tuple[str, ...]
    loops: tuple[str, ...]

    def retiled(self, tiling: Tiling) -> Structure:
        """The same kernel with other tile sizes (and the same tiled and spread dims); what does not depend on sizes is kept."""
        other = Structure(tiling, self.stages, self.grid, self.loops)
        self.__dict__.setdefault("known", {})
        other.__dict__.update({k: v for k, v in self.__dict__.items() if k not in SIZED})
        return other

    @cached_property
    def graph(self) -> StageGraph:
        return self.tiling.graph

    @cached_property
    def facts(self) -> Facts:
        return facts(self.graph)

    @cached_property
    def ops(self) -> tuple[tuple[Stage, Op], ...]:
        """All operations of the kernel in the order they run, each with its stage."""
        stages = map(self.graph.stage, self.order)
        return tuple((stage, op) for stage in stages for op in stage.body)

    @cached_property
    def position(self) -> dict[str, int]:
        """The place of every operation in the order they run, by the value it defines."""
        return {op.out: i for i, (_, op) in enumerate(self.ops)}

    @cached_property
    def made(self) -> dict[str, tuple[Stage, Op]]:
        """The operations by the value they define."""
        return {op.out: (s, op) for s, op in self.ops}

    @cached_property
    def states(self) -> dict[str, Carry]:
        """Carried states of scans inside of the kernel."""
        return {c.state: c for c in self.graph.carries if c.next in self.made}

    @cached_property
    def nexts(self) -> dict[str, Carry]:
        return {c.next: c for c in self.states.values()}

    def op_loops(self, stage: Stage, op: Op) -> frozenset[str]:
        """The loops an operation runs in: those whose dim it iterates, and that of its scan."""
        return self.facts.ops[op.out].dims.intersection(self.loops)

    def accumulates(self, stage: Stage, op: Op) -> frozenset[str]:
        """Loops over which a reduction adds up; a scan's own loop does not count, its steps stay apart."""
        return self.facts.ops[op.out].sums.intersection(self.loops)

    def parts(self, stage: Stage, op: Op) -> tuple[Op, ...]:
        """The contractions that a Cube operation adds up in one accumulator; any other operation stands for itself."""
        return self.facts.ops[op.out].parts

    @cached_property
    def accumulator(self) -> dict[str, str]:
        """For every contraction the value whose accumulator it adds to: its own, or that of the Cube sum it is part of."""
        cube = [(s, op) for s, op in self.ops if s.unit == "cube"]
        found = {op.out: op.out for _, op in cube}
        for stage, op in cube:
            found.update({p.out: op.out for p in self.parts(stage, op)})
        return found

    @cached_property
    def accumulators(self) -> tuple[str, ...]:
        """The values that L0C holds one tile each of."""
        products = (op.out for _, op in self.ops if OPS[op.fn].form == "contract")
        return tuple(dict.fromkeys(self.accumulator[out] for out in products))

    def crosses_grid(self, op: Op) -> frozenset[str]:
        """Grid dims that a reduction sums over: its result is only complete after the launch."""
        return self.facts.ops[op.out].sums.intersection(self.grid)

    @cached_property
    def levels(self) -> dict[str, Level]:
        """The level of every operation, by the value it defines."""
        found: dict[str, Level] = {}
        for stage, op in self.ops:
            if self.op_loops(stage, op):
                found[op.out] = "body"
            else:
                late = any(found.get(self.source(r), "prologue") != "prologue" for r in op.reads)
                found[op.out] = "epilogue" if late else "prologue"
        return found

    def source(self, value: str) -> str:
        """The operation behind a value: a state stands for what it is carried to."""
        return self.states[value].next if value in self.states else value

    def unit(self, value: str) -> Unit | None:
        """The unit that makes a value inside of the kernel; None if it comes from GM."""
        return self.units.get(self.source(value))

    @cached_property
    def units(self) -> dict[str, Unit]:
        """The unit of every operation, by the value it defines; addressing alone has none."""
        slices = self.graph.slices
        return {v: "cube" if v in self.absorbed else stage.unit for v, (stage, _) in self.made.items() if v not in slices}

    @cached_property
    def readers(self) -> dict[str, tuple[tuple[Stage, Op], ...]]:
        """Operations of the kernel that read a value, by value."""
        found: dict[str, list[tuple[Stage, Op]]] = {}
        for stage, op in self.ops:
            for r in op.reads:
                found.setdefault(r, []).append((stage, op))
        return {v: tuple(users) for v, users in found.items()}

    @cached_property
    def stored(self) -> tuple[str, ...]:
        """Values that the kernel writes to GM for the caller or for stages outside of it."""
        inside = set(self.stages)
        return tuple(
            out for out in self.made if self.graph.value(out).role == "output" or any(r not in inside for r in self.graph.readers(out))
        )

    @cached_property
    def loaded(self) -> tuple[str, ...]:
        """Values that the kernel reads from GM, in order of first use."""
        reads = (r for _, op in self.ops for r in op.reads)
        inits = (c.init for c in self.states.values() if isinstance(c.init, str))
        return tuple(dict.fromkeys(r for r in (*reads, *inits) if r not in self.made and r not in self.states))

    @cached_property
    def absorbed(self) -> frozenset[str]:
        """Casts of a finished Cube result that only go to GM: the Cube's own store rounds, no Vector work is needed."""
        found: set[str] = set()
        for stage, op in self.ops:
            if op.fn != "cast" or stage.unit != "vector" or op.out in self.readers or len(op.reads) != 1:
                continue
            source = self.made.get(op.reads[0])
            if self.graph.value(op.reads[0]).dtype != "float32":
                continue
            if source and source[0].unit == "cube" and len(self.readers[op.reads[0]]) == 1 and not self.crosses_grid(source[1]):
                found.add(op.out)
        return frozenset(found)

    def atomic(self, value: str) -> bool:
        """Whether the kernel adds the value up in GM."""
        return value in self.made and bool(self.crosses_grid(self.made[value][1]))

    def lane_dim(self, value: str) -> str:
        """The tiled dim of a sum to one number for each tile, if only the host needs that: the last addition is left to it."""
        if value in self.readers or value not in self.made or self.tiling.shape(value):
            return ""
        _, op = self.made[value]
        tiled = [d for d in op.over if self.tiling.is_matrix(d)]
        return tiled[0] if len(tiled) == 1 and op.fn == "sum" else ""

    @cached_property
    def bounding(self) -> tuple[Affine, ...]:
        """Index conditions outside of which all that the loops' body leaves behind is dead."""
        body = frozenset(out for out, level in self.levels.items() if level == "body")
        allowed = skippable(self.graph, body) if body else ()
        return tuple(c for c in allowed if all(set(c.dims) <= set(self.graph.value(v).dims) for v in self.rewritten))

    @property
    def rewritten(self) -> tuple[str, ...]:
        """Values that every turn of the loops writes to GM anew, so that a turn left out would leave its tile unwritten."""
        made = (v for v in self.stored if self.levels[v] == "body")
        return tuple(v for v in made if not self.atomic(v) and not self.complete_after_loop(v))

    @cached_property
    def bounds(self) -> dict[str, tuple[Bound, ...]]:
        """For every loop the index conditions that bound it."""
        found: dict[str, tuple[Bound, ...]] = {}
        for i, loop in enumerate(self.loops):
            fixed = frozenset(self.grid) | frozenset(self.loops[:i])
            found[loop] = tuple(b for c in self.bounding if (b := bound(self.tiling, c, loop, fixed)))
        return found

    def skips(self, condition: Affine) -> bool:
        """Whether some loop leaves out all tiles on which the condition cannot hold."""
        for i, loop in enumerate(self.loops):
            fixed = frozenset(self.grid) | frozenset(self.loops[:i])
            rest = (d for d in condition.dims if d != loop and d not in fixed and self.tiling.trips(d) > 1)
            made = bound(self.tiling, condition, loop, fixed)
            if made in self.bounds[loop] and not any(rest) and leaves_something(self.tiling, condition, loop):
                return True
        return False

    @cached_property
    def handoffs(self) -> tuple[Handoff, ...]:
        """Every value that one unit makes and the other reads inside of the kernel, with default choices."""
        found: list[Handoff] = []
        if len(set(self.units.values())) < 2:
            return ()
        for out, (_, op) in self.made.items():
            unit = self.unit(out)
            readers = {"cube" if o.out in self.absorbed else s.unit for s, o in self.readers.get(out, ())}
            if op.out in self.absorbed or unit is None:
                continue
            other = "vector" if unit == "cube" else "cube"
            if other in readers:
                late = self.complete_after_loop(out) and not self.crosses_in_step(out)
                level: Level = "epilogue" if late else self.levels[out]
                direction = "cube->vector" if unit == "cube" else "vector->cube"
                found.append(Handoff(out, f"workspace_{out}", direction, level, slots=0 if out in self.stored else 1))
        return tuple(found)

    def complete_after_loop(self, value: str) -> bool:
        """Whether a value is only whole once the loops have ended."""
        stage, op = self.made[value]
        return bool(self.accumulates(stage, op)) or (value in self.nexts and bool(self.loops) and self.outlives_scan(value))

    def outlives_scan(self, value: str) -> bool:
        """Whether what a state is carried to is wanted after the scan: by the caller or by another stage."""
        stage = self.made[value][0]
        readers = (self.graph.stage(r) for r in self.graph.readers(value))
        return self.graph.value(value).role == "output" or any((r.scan, r.loop) != (stage.scan, stage.loop) for r in readers)

    def crosses_in_step(self, value: str) -> bool:
        """Whether the other unit reads what a state is carried to within the same step."""
        stage = self.made[value][0]
        return value in self.nexts and any(s.scan == stage.scan and s.unit != self.unit(value) for s, _ in self.readers.get(value, ()))

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Stages as the kernel runs them: Cube stages as soon as they can, Vector stages one by one, so that the units overlap."""
        return self.facts.in_order(frozenset(self.stages))

    @cached_property
    def clusters(self) -> tuple[tuple[str, ...], ...]:
        """Vector operations that pass tiles to each other in UB: they must be shared alike."""
        return sharing.clusters(self)

    @cached_property
    def split(self) -> dict[str, str] | None:
        """For every Vector value the dim whose tile the two Vector cores share; None if some value allows none."""
        key = ("split", sharing.size_class(self.tiling))
        if key not in self.known:
            self.known[key] = sharing.split(self)
        return cast("dict[str, str] | None", self.known[key])

    @cached_property
    def sources(self) -> dict[str, frozenset[str]]:
        """All that an operation's result is computed from within the same iteration, itself included, by value."""
        found: dict[str, frozenset[str]] = {}
        for out, (_, op) in self.made.items():
            found[out] = frozenset({out}).union(*(found[r] for r in op.reads if r in found))
        return found

    @cached_property
    def known(self) -> dict[object, object]:
        """What was worked out from this structure, by all that it depends on; shared with retiled ones."""
        return {}
