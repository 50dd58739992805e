"""Operands of Vector operations: loaded from GM, taken over from the Cube, repeated to the tile of the result."""

from __future__ import annotations

from dataclasses import dataclass

from fusion.emit.builder import KernelBuilder, Tile
from fusion.emit.operations import Coder
from fusion.emit.tile_ops import Operand
from fusion.emit.ub import UnifiedBuffer
from fusion.graph import Op, Stage, Value
from fusion.plan.tiling import FRACTAL
from fusion.plan.types import Handoff, Level


@dataclass
class Operands:
    """Brings values into UB, each once."""

    ub: UnifiedBuffer
    coder: Coder

    @property
    def b(self) -> KernelBuilder:
        return self.ub.b

    def operand(self, stage: Stage, op: Op, arg: Operand, dims: tuple[str, ...], split: str, level: Level) -> Operand:
        """An operand as a buffer of the shape of the result, or a number."""
        if not isinstance(arg, str):
            return float(arg)
        tile = self.fetch(stage, arg, dims, split, level)
        if tile.dims != dims and self.b.tiling.graph.value(arg).dtype == "bool":
            return self.wide_mask(stage, arg, tile, dims, split, level)
        return self.broadcast(stage, arg, tile, dims, split, level).name

    def fetch(self, stage: Stage, value: str, dims: tuple[str, ...], split: str, level: Level) -> Tile:
        """The value's tile in UB, loaded or taken over from the Cube if it is not there."""
        v = self.b.tiling.graph.value(value)
        own = self.b.tiling.shape(value)
        part = split if split in own or not own else ""
        as_lanes = own or dims[:1]
        found = self.ub.tiles.get((value, part, as_lanes))
        if found:
            return found
        made_here = self.b.structure.unit(value)
        if made_here == "cube":
            return self.take_over(stage, v, part, level)
        if made_here == "vector" and not own:
            return self.lane_value(v, as_lanes, part, level)
        if made_here == "vector":
            raise AssertionError(f"{value} should be in UB split {part!r}")
        return self.load(stage, v, as_lanes, part, level)

    def lane_value(self, v: Value, dims: tuple[str, ...], split: str, level: Level) -> Tile:
        """A value without tiled dims that the kernel computes, as a vector as long as the tile that it meets."""
        stage, op = self.b.structure.made[v.name]
        args: list[Operand] = [self.fetch(stage, a, dims, split, level).name if isinstance(a, str) else a for a in op.args]
        out = self.ub.kept_tile(v, dims, split, f"{v.name}_ub")
        self.b.explain(level, stage.name, op)
        self.b.add(level, stage.name, *self.coder.code(op, out, args, split))
        self.ub.tiles[(v.name, split, dims)] = out
        self.ub.moving.update([out.name] if level == "body" else [])
        return out

    def load(self, stage: Stage, v: Value, dims: tuple[str, ...], split: str, level: Level) -> Tile:
        """GM -> UB, as early as the value's dims allow if the kernel loops."""
        moving = any(d in self.b.kernel.loops for d in v.dims)
        at: Level = "prologue" if level == "body" and not moving else level
        tile = self.ub.new(v, dims, split, at, use="in")
        if at != level:
            self.ub.kept.add(tile.name)
        if v.dtype == "int8" and any(self.b.tiling.has_tail(d) for d in tile.dims) and tile.name not in self.ub.cleared:
            self.ub.cleared.add(tile.name)  # a copy pads what lies beyond the end with zeros, but not for int8
            self.b.add("prologue", stage.name, *self.ub.zeroed(tile.buffer))
        part = self.b.tiling.graph.slices.get(v.name)
        source = self.b.tiling.graph.value(part.source) if part else v
        self.b.param(source, "input", part=part)
        lanes = f"0:{self.b.extent_text(dims[0], split)}" if dims else "0:16"
        self.b.add(at, stage.name, f"T.copy({self.b.region(source, split, part, lanes)}, {tile.name})")
        self.ub.tiles[(v.name, split, dims)] = tile
        return tile

    def take_over(self, stage: Stage, v: Value, split: str, level: Level) -> Tile:
        """Cube -> Vector: this core's part of the Cube's tile."""
        handoff = self.b.handoff(v.name)
        assert handoff is not None, f"no handoff for {v.name}"
        dims = self.b.tiling.shape(v.name)
        relay = handoff.kind == "relay"  # the compiler copies before the first use of the buffer: it must have no other
        tile = self.ub.kept_tile(v, dims, split, f"{v.name}_ub") if relay else self.ub.new(v, dims, split, level, use="in")
        source = self.b.relays[v.name] if relay else self.b.handoff_region(handoff, v, split)
        self.b.add(level, stage.name, f"T.copy({source}, {tile.name})")
        self.ub.tiles[(v.name, split, tile.dims)] = tile
        if handoff.free:
            self.tell_free(stage, handoff, tile, level)
        return tile

    def tell_free(self, stage: Stage, handoff: Handoff, tile: Tile, level: Level) -> None:
        """Sends a corner of the tile back: once it is there, the tile has been read."""
        corner = ", ".join(f"0:{FRACTAL}" for _ in tile.dims)
        shape = tuple(FRACTAL for _ in tile.dims)
        small = self.b.buffer(f"{handoff.value}_read_ub", "ub", shape, "float16")
        self.ub.kept.add(small.name)
        self.ub.born[small.name] = "prologue"
        half = f"vid * {FRACTAL} : vid * {FRACTAL} + {FRACTAL}" if tile.split else f"0:{FRACTAL}"
        self.b.add(level, stage.name, f"# tell that {handoff.name} has been read", f"T.copy({tile.name}[{corner}], {small.name})")
        self.b.add(level, stage.name, f"T.copy({small.name}, {self.b.free_name(handoff)}[cid, {half}, 0:{FRACTAL}])")

    def broadcast(self, stage: Stage, value: str, tile: Tile, dims: tuple[str, ...], split: str, level: Level) -> Tile:
        """The tile repeated to the dims of the result; once before the loop if it does not change there."""
        if tile.dims == dims:
            return tile
        key = (value, split, dims)
        if key in self.ub.tiles:
            return self.ub.tiles[key]
        born = self.ub.born[tile.name]
        at = born if born == "prologue" and tile.name not in self.ub.moving else level
        v = self.b.tiling.graph.value(value)
        wide = self.ub.new(Value(v.name, v.dims, v.dtype), dims, split, at, f"{value}_2d_ub")
        axis = 1 if tile.dims == dims[:1] else 0
        self.b.add(at, stage.name, f"T.tile.broadcast({wide.name}, {tile.name}, axis={axis})")
        if at != level:
            self.ub.kept.update((wide.name, tile.name))
        self.ub.tiles[key] = wide
        return wide

    def wide_mask(self, stage: Stage, value: str, mask: Tile, dims: tuple[str, ...], split: str, level: Level) -> str:
        """The bits of a comparison for a wider tile: as 1.0 and 0.0 they can be repeated, and compared again."""
        bits = Value(value, (), "float32")
        line = self.ub.new(bits, mask.dims, split, level, f"{value}_line_ub")
        self.b.add(level, stage.name, f"T.tile.fill({line.name}, 1.0)")
        self.b.add(level, stage.name, f'T.tile.select({line.name}, {mask.name}, {line.name}, 0.0, "VSEL_TENSOR_SCALAR_MODE")')
        wide = self.ub.new(bits, dims, split, level, f"{value}_2d_ub")
        self.b.add(level, stage.name, f"T.tile.broadcast({wide.name}, {line.name}, axis={1 if mask.dims == dims[:1] else 0})")
        out = self.ub.new(self.b.tiling.graph.value(value), dims, split, level, f"{value}_wide_ub")
        self.b.add(level, stage.name, f'T.tile.compare({out.name}, {wide.name}, T.float32(0.5), "GE")')
        self.ub.pool += [line.buffer, wide.buffer]
        return out.name
