"""What becomes of the result of a Vector operation: kept for later, stored in GM, handed to the Cube."""

from __future__ import annotations

from dataclasses import dataclass

from fusion.emit.builder import LEVELS, KernelBuilder, Tile
from fusion.emit.program import Line
from fusion.emit.ub import UnifiedBuffer
from fusion.graph import Op, Stage, Value
from fusion.plan.tiling import FRACTAL
from fusion.plan.types import Handoff, Level


@dataclass
class Results:
    """Keeps, stores and hands over tiles."""

    ub: UnifiedBuffer

    @property
    def b(self) -> KernelBuilder:
        return self.ub.b

    def finish(self, stage: Stage, op: Op, value: Value, out: Tile, split: str, level: Level) -> None:
        """Keeps the result for later operations, stores it, hands it to the Cube."""
        self.ub.release_dead(op, level, out.name)
        self.ub.tiles[(value.name, split if split in out.dims else "", out.dims)] = out
        if level == "body":
            self.ub.moving.add(out.name)
        if self.read_later(value.name, level):
            self.ub.kept.add(out.name)
        handoff = self.b.handoff(value.name)
        done: Level = "epilogue" if self.b.structure.complete_after_loop(value.name) else level
        sent = out
        if handoff and handoff.direction == "vector->cube":
            sent = self.leaving(stage, value, out, split, handoff.level)
            self.b.add(handoff.level, stage.name, f"T.copy({sent.name}, {self.way_to_cube(handoff, value, split)})")
            if handoff.free:
                self.wait_free(stage, handoff)
        if value.name in self.b.structure.stored and not (handoff and self.b.through_global(handoff)):
            again = sent is out or (handoff and handoff.level != done)
            self.store(stage, value, self.leaving(stage, value, out, split, done) if again else sent, split, done)

    def way_to_cube(self, handoff: Handoff, value: Value, split: str) -> str:
        """Where a tile for the Cube goes: a workspace, or by the compiler's relay straight to the L1 buffer."""
        if handoff.kind == "workspace":
            return self.b.handoff_region(handoff, value, split)
        self.b.relays[value.name] = self.b.tile(value, "l1").name
        return self.b.relays[value.name]

    def leaving(self, stage: Stage, value: Value, out: Tile, split: str, level: Level) -> Tile:
        """The tile that goes to GM: a copy if Vector operations read the value afterwards.

        The compiler orders the next write to a buffer after its last access only: a store followed by a Vector read is forgotten.
        """
        again = level == "body" or self.b.kernel.persistent or self.ub.born.get(out.name) == level
        if not self.ub.leaves(value.name) or not (self.read_in_loop(value, out, level) or (again and self.read_at(value, level))):
            return out
        copy = self.ub.new(value, out.dims, out.split, level, f"{value.name}_out_ub", "out")
        self.ub.kept.add(copy.name)
        self.b.add(level, stage.name, *self.ub.moved(out.name, copy.buffer))
        return copy

    def read_at(self, value: Value, level: Level) -> bool:
        """Whether Vector operations read a value at a level, the end of a step that carries it on included."""
        readers = (o.out for s, o in self.b.structure.readers.get(value.name, ()) if s.unit == "vector")
        return any(self.b.structure.levels[r] == level for r in readers) or (level == "body" and value.name in self.b.structure.nexts)

    def read_in_loop(self, value: Value, out: Tile, level: Level) -> bool:
        """Whether a value that leaves after the loop was read in it once it was there: by the step's operations, or to carry it on."""
        if level != "epilogue" or self.b.structure.levels[value.name] != "body":
            return False
        readers = (o.out for s, o in self.b.structure.readers.get(value.name, ()) if s.unit == "vector")
        moved = value.name in self.b.structure.nexts and out.name not in self.ub.state_names
        return moved or any(self.b.structure.levels[r] == "body" for r in readers)

    def read_later(self, value: str, level: Level) -> bool:
        users = self.b.structure.readers.get(value, ())
        later = any(LEVELS.index(self.b.structure.levels[o.out]) > LEVELS.index(level) for _, o in users)
        done = self.b.structure.complete_after_loop(value) if value in self.b.structure.made else False
        return later or done

    def store(self, stage: Stage, value: Value, out: Tile, split: str, level: Level) -> None:
        """UB -> GM, atomically where other blocks add to the same place."""
        assert self.ub.uses.get(out.name) != "in" or not self.ub.repeats, f"{out.name} is loaded and stored"
        atomic = self.b.structure.atomic(value.name)
        self.b.param(value, "atomic" if atomic else "output")
        place, region = self.b.place(value, split), self.b.region(value, split)
        text = f"T.tile.atomic_add({place}, {out.name})" if atomic else f"T.copy({out.name}, {region})"
        self.b.add(level, stage.name, text)

    def copied(self, stage: Stage, value: Value, tile: Tile, level: Level) -> Tile:
        out = self.ub.new(value, tile.dims, tile.split, level, use=self.ub.use(value.name))
        self.b.add(level, stage.name, *self.ub.moved(tile.name, out.buffer))
        return out

    def wait_free(self, stage: Stage, handoff: Handoff) -> None:
        """Reads the corner that the Cube sends back, at the end of the iteration."""
        small = self.b.buffer(f"{handoff.value}_free_ub", "ub", (FRACTAL, FRACTAL), "float32")
        self.ub.kept.add(small.name)
        self.b.closing.append(Line(f"T.copy({self.b.free_name(handoff)}[cid, 0:{FRACTAL}, 0:{FRACTAL}], {small.name})", stage.name))
