"""Cube stages as tile code: GM -> L1 loads, gemms into L0C, stores, atomic sums and handoffs."""

from __future__ import annotations

from dataclasses import dataclass, field

from fusion.emit.builder import KernelBuilder, Tile
from fusion.emit.program import Line
from fusion.graph import Op, Stage, Value
from fusion.plan.tiling import FRACTAL
from fusion.plan.types import Handoff, Level


@dataclass
class CubeEmitter:
    """Writes the contractions of one kernel."""

    b: KernelBuilder
    l1: dict[tuple[str, Level], Tile] = field(default_factory=dict[tuple[str, Level], Tile])
    l0c: dict[str, Tile] = field(default_factory=dict[str, Tile])
    started: set[str] = field(default_factory=set[str])

    def emit(self, stage: Stage, op: Op, level: Level) -> None:
        """Writes one contraction and, once its accumulator is complete, what becomes of it."""
        if op.fn == "contract":
            self.gemm(stage, op, level)
        last = all(p.out in self.started for p in self.b.structure.parts(stage, op))
        if self.b.structure.accumulator[op.out] == op.out and last:
            done: Level = "epilogue" if self.b.structure.complete_after_loop(op.out) else level
            self.results(stage, op.out, done)

    def gemm(self, stage: Stage, op: Op, level: Level) -> None:
        target = self.b.structure.accumulator[op.out]
        out = self.fragment(target)
        left, right = (self.b.tiling.graph.value(a) for a in op.args if isinstance(a, str))
        rows, _ = self.b.tiling.shape(op.out)
        if rows not in left.dims:
            left, right = right, left
        inner = next(d for d in op.over if self.b.tiling.is_matrix(d))
        a, b = self.operand(stage, left, level), self.operand(stage, right, level)
        flags = [f"transpose_{n}=True" for n, t, first in (("A", a, rows), ("B", b, inner)) if t.dims[0] != first]
        flags.append(f"init={self.init(stage, op, target)}")
        self.started.add(op.out)
        self.b.explain(level, stage.name, op)
        self.b.add(level, stage.name, f"T.gemm_v0({a.name}, {b.name}, {out.name}, {', '.join(flags)})")

    def init(self, stage: Stage, op: Op, target: str) -> str:
        """Whether the accumulator starts from zero: in the first step, and only for the first contraction that adds to it."""
        first = not any(p.out in self.started for p in self.b.structure.parts(*self.b.structure.made[target]))
        if not first:
            return "False"
        return f"({self.b.first_step()})" if self.b.structure.accumulates(stage, op) else "True"

    def fragment(self, value: str) -> Tile:
        if value not in self.l0c:
            self.l0c[value] = self.b.tile(self.b.tiling.graph.value(value), "l0c")
        return self.l0c[value]

    def operand(self, stage: Stage, value: Value, level: Level) -> Tile:
        """The operand's tile in L1: loaded as early as its dims allow, or taken over from the Vector unit."""
        handoff = self.b.handoff(value.name)
        if self.b.structure.unit(value.name) == "vector":
            assert handoff is not None, f"no handoff for {value.name}"
            return self.take_over(stage, value, handoff)
        moving = any(d in self.b.kernel.loops for d in value.dims)
        at: Level = "prologue" if level == "body" and not moving else level
        found = self.l1.get((value.name, at)) or self.l1.get((value.name, "prologue"))
        if found:
            return found
        tile = self.b.tile(value, "l1")
        part = self.b.tiling.graph.slices.get(value.name)
        source = self.b.tiling.graph.value(part.source) if part else value
        self.b.param(source, "input", part=part)
        self.b.add(at, stage.name, f"T.copy({self.b.region(source, part=part)}, {tile.name})")
        self.l1[(value.name, at)] = tile
        return tile

    def take_over(self, stage: Stage, value: Value, handoff: Handoff) -> Tile:
        """Vector -> Cube: the whole tile, at the level at which it is complete."""
        at = handoff.level
        found = self.l1.get((value.name, at))
        if found:
            return found
        if handoff.kind == "relay":
            tile = Tile(self.b.buffers[self.b.relays[value.name]], self.b.tiling.shape(value.name))
        else:
            tile = self.b.tile(value, "l1")
            self.b.add(at, stage.name, f"T.copy({self.b.handoff_region(handoff, value)}, {tile.name})")
        self.l1[(value.name, at)] = tile
        return tile

    def results(self, stage: Stage, value: str, level: Level) -> None:
        """The complete accumulator goes to the Vector unit, to GM, or both."""
        tile, v = self.l0c[value], self.b.tiling.graph.value(value)
        handoff = self.b.handoff(value)
        if handoff and handoff.kind == "relay":
            self.b.relays[value] = tile.name
        elif handoff:
            self.b.add(level, stage.name, f"T.copy({tile.name}, {self.b.handoff_region(handoff, v)})")
        for cast_stage, cast_op in self.b.structure.readers.get(value, ()):
            if cast_op.out in self.b.structure.absorbed:
                self.store(cast_stage, self.b.tiling.graph.value(cast_op.out), tile, level)
        if value in self.b.structure.stored and not (handoff and self.b.through_global(handoff)):
            self.store(stage, v, tile, level)
        if handoff and handoff.free:
            self.wait_free(stage, handoff)
        self.tell_free(stage, value, tile)

    def tell_free(self, stage: Stage, value: str, tile: Tile) -> None:
        """Sends a corner of a result back for every tile that it was made from and whose writer waits for that."""
        sources = {r for p in self.b.structure.parts(*self.b.structure.made[value]) for r in p.reads}
        for h in (h for h in self.b.kernel.handoffs if h.free and h.direction == "vector->cube" and h.value in sources):
            corner = f"{tile.name}[0:{FRACTAL}, 0:{FRACTAL}]"
            place = f"{self.b.free_name(h)}[cid, 0:{FRACTAL}, 0:{FRACTAL}]"
            self.b.add(h.level, stage.name, f"# tell that {h.name} has been read", f"T.copy({corner}, {place})")

    def store(self, stage: Stage, value: Value, tile: Tile, level: Level) -> None:
        """L0C -> GM, rounded to the value's dtype on the way, atomically where other blocks add to the same place."""
        atomic = self.b.structure.atomic(value.name)
        self.b.param(value, "atomic" if atomic else "output")
        text = f"T.tile.atomic_add({self.b.place(value)}, {tile.name})" if atomic else f"T.copy({tile.name}, {self.b.region(value)})"
        self.b.add(level, stage.name, text)

    def wait_free(self, stage: Stage, handoff: Handoff) -> None:
        """Reads the corner that the Vector cores send back once they have read the tile, at the end of the iteration."""
        rows = FRACTAL * self.b.kernel.threads
        buffer = self.b.buffer(f"{handoff.value}_free_l1", "l1", (rows, FRACTAL), "float16")
        self.b.closing.append(Line(f"T.copy({self.b.free_name(handoff)}[cid, 0:{rows}, 0:{FRACTAL}], {buffer.name})", stage.name))
