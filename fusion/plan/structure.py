"""What follows from putting stages into one kernel with a given grid and loops: the level of every operation and the way of every value.

Rules (rules.py), cost and emission all read this one analysis.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from fusion.graph import Affine, Op, Stage, StageGraph
from fusion.graph.ops import OPS
from fusion.graph.types import Carry, Unit
from fusion.plan.masks import Bound, bound, leaves_something, skippable
from fusion.plan.tiling import COMPARISONS, FRACTAL, REPEAT, Tiling
from fusion.plan.types import Handoff, Level

SIZE_FREE = frozenset(
    (
        "ops",
        "position",
        "made",
        "states",
        "nexts",
        "accumulator",
        "levels",
        "readers",
        "stored",
        "loaded",
        "absorbed",
        "handoffs",
        "order",
        "clusters",
        "split",
    )
)
MIN_SPLIT_TILE = 2  # rows are shared between two Vector cores if there are two


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
        other.__dict__.update({k: v for k, v in self.__dict__.items() if k in SIZE_FREE})
        return other

    @property
    def graph(self) -> StageGraph:
        return self.tiling.graph

    @cached_property
    def ops(self) -> tuple[tuple[Stage, Op], ...]:
        """All operations of the kernel in the order they run, each with its stage."""
        return tuple((self.graph.stage(n), op) for n in self.order for op in self.graph.stage(n).body)

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
        dims = set(self.graph.op_dims(op)) | ({stage.scan} if stage.scan else set())
        return frozenset(d for d in self.loops if d in dims)

    def accumulates(self, stage: Stage, op: Op) -> frozenset[str]:
        """Loops over which a reduction adds up; a scan's own loop does not count, its steps stay apart."""
        over = (d for part in self.parts(stage, op) for d in part.over if OPS[part.fn].form in ("contract", "reduce"))
        return frozenset(d for d in over if d in self.loops and d != stage.scan)

    def parts(self, stage: Stage, op: Op) -> tuple[Op, ...]:
        """The contractions that a Cube operation adds up in one accumulator; any other operation stands for itself."""
        if stage.unit == "vector" or op.fn != "add":
            return (op,)
        by_name = {o.out: o for o in stage.body}
        return tuple(p for r in op.reads for p in self.parts(stage, by_name[r]))

    @cached_property
    def accumulator(self) -> dict[str, str]:
        """For every contraction the value whose accumulator it adds to: its own, or that of the Cube sum it is part of."""
        found = {op.out: op.out for s, op in self.ops if s.unit == "cube"}
        for stage, op in self.ops:
            found.update({p.out: op.out for p in self.parts(stage, op)} if stage.unit == "cube" else {})
        return found

    def crosses_grid(self, op: Op) -> frozenset[str]:
        """Grid dims that a reduction sums over: its result is only complete after the launch."""
        stage = self.made[op.out][0]
        over = (d for part in self.parts(stage, op) for d in part.over if OPS[part.fn].form in ("contract", "reduce"))
        return frozenset(d for d in over if d in self.grid and d != stage.scan)

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
        source = self.source(value)
        if source not in self.made or source in self.graph.slices:
            return None
        return "cube" if source in self.absorbed else self.made[source][0].unit

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
        if value not in self.made or self.tiling.shape(value) or value in self.readers:
            return ""
        _, op = self.made[value]
        tiled = [d for d in op.over if self.tiling.is_matrix(d)]
        return tiled[0] if len(tiled) == 1 and op.fn == "sum" else ""

    @cached_property
    def bounds(self) -> dict[str, tuple[Bound, ...]]:
        """For every loop the index conditions that bound it, if all that its body leaves behind is dead outside of them."""
        body = frozenset(out for out, level in self.levels.items() if level == "body")
        allowed = skippable(self.graph, body) if body else ()
        found: dict[str, tuple[Bound, ...]] = {}
        for i, loop in enumerate(self.loops):
            fixed = frozenset(self.grid) | frozenset(self.loops[:i])
            found[loop] = tuple(b for c in allowed if (b := bound(self.tiling, c, loop, fixed)))
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
        graph = self.graph.graph
        left, done = list(self.stages), list[str]()
        while left:
            ready = [s for s in left if not any(p in left for p in graph.predecessors(s))]
            cube = [s for s in ready if self.graph.stage(s).unit == "cube"]
            step = cube or ready[:1]
            done += step
            left = [s for s in left if s not in step]
        return tuple(done)

    @cached_property
    def clusters(self) -> dict[str, int]:
        """Vector operations that pass tiles to each other in UB, as a number per value: they must be split alike."""
        label = {out: i for i, out in enumerate(self.made)}
        for _, op in self.ops:
            for r in op.reads:
                source = self.source(r)
                if source in label and self.unit(source) == self.unit(op.out) == "vector" and self.tiling.shape(source):
                    old, new = label[op.out], label[source]
                    label = {k: new if v == old else v for k, v in label.items()}
        return label

    @cached_property
    def split(self) -> dict[str, str] | None:
        """For every Vector value the dim whose tile the two Vector cores share; None if some value allows none."""
        found: dict[str, str] = {}
        for number in sorted(set(self.clusters.values())):
            members = [o for o, n in self.clusters.items() if n == number and self.unit(o) == "vector" and self.takes_tiles(o)]
            if not members:
                continue
            dim = self._split_dim(members)
            if dim is None and self._leaves_core(members):
                return None
            found.update(dict.fromkeys(members, dim or ""))
        return found

    def _leaves_core(self, members: list[str]) -> bool:
        """Whether operations take tiles from the Cube or send some away: otherwise both Vector cores may do all of it."""
        crossing = {h.value for h in self.handoffs}
        return bool(self._received(members)) or any(o in crossing or o in self.stored for o in members)

    def takes_tiles(self, value: str) -> bool:
        """Whether the operation behind a value works on tiles: a number for each block goes where it is used."""
        return value not in self.graph.silent and any(self.tiling.is_matrix(d) for d in self.graph.op_dims(self.made[value][1]))

    def _split_dim(self, members: list[str]) -> str | None:
        dims = dict.fromkeys(d for o in members for d in self.graph.op_dims(self.made[o][1]) if self.tiling.is_matrix(d))
        order = {d.name: i for i, d in enumerate(self.graph.dims)}
        fits = (d for d in sorted(dims, key=order.__getitem__) if self.tiling.tile(d) >= MIN_SPLIT_TILE and self._can_split(d, members))
        return next(fits, None)

    def _can_split(self, dim: str, members: list[str]) -> bool:
        """Every tile that leaves the cluster has the dim, as its first one, or is summed over it atomically."""
        leaving = set(self.stored) | {h.value for h in self.handoffs if h.direction == "vector->cube"}
        if self.tiling.tile(dim) % (2 * FRACTAL) and self._is_column(dim, members):
            return False
        for out in members:
            _, op = self.made[out]
            if op.fn in COMPARISONS and not self.fills_repeats(out, 2):
                return False
            if dim in op.over and not self.atomic(out) and not self.lane_dim(out):
                return False
            if out in leaving and not self.atomic(out) and not self.lane_dim(out) and self.tiling.shape(out)[:1] != (dim,):
                return False
        return all(self.tiling.shape(r)[:1] == (dim,) for r in self._received(members))

    def fills_repeats(self, value: str, cores: int) -> bool:
        """Whether a tile shared by so many Vector cores is whole repeats, as comparing takes it."""
        return math.prod(self.tiling.tile(d) for d in self.tiling.shape(value)) // cores % REPEAT == 0

    def _is_column(self, dim: str, members: list[str]) -> bool:
        """Whether some tile has the dim along its rows, which must fill 32 bytes in UB."""
        shapes = (self.tiling.shape(v) for o in members for v in (o, *self.made[o][1].reads))
        return any(len(s) == 2 and s[1] == dim for s in shapes)

    def _received(self, members: list[str]) -> list[str]:
        """Cube results that the cluster takes over."""
        return [r for o in members for r in self.made[o][1].reads if self.unit(r) == "cube"]
