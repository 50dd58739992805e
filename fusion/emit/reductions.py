"""Reductions: within a tile, over the loops, and to a single number."""

from __future__ import annotations

from dataclasses import dataclass

from fusion.emit.builder import KernelBuilder, Tile
from fusion.emit.conditions import NEUTRAL, Conditions
from fusion.emit.operands import Operands
from fusion.emit.results import Results
from fusion.emit.ub import UnifiedBuffer
from fusion.graph import Op, Stage, Value
from fusion.plan.types import Level

REDUCE = {"sum": "sum", "amax": "max", "amin": "min"}
COMBINE = {"sum": "add", "amax": "max", "amin": "min"}


@dataclass
class Reductions:
    """Writes the reductions of one kernel."""

    ub: UnifiedBuffer
    masks: Conditions
    operands: Operands
    results: Results

    @property
    def b(self) -> KernelBuilder:
        return self.ub.b

    def reduce(self, stage: Stage, op: Op, value: Value, level: Level) -> None:
        """Within the tile first, then over the loops into a buffer that lives across them."""
        split, source_name = self.ub.split(op.out), op.reads[0]
        source_dims = self.b.tiling.shape(source_name) or self.b.tiling.shape(op.out)
        source = self.operands.fetch(stage, source_name, source_dims, split, level)
        inside = tuple(d for d in op.over if d in source.dims)
        tile = self.masks.without_tail(stage, op, source, inside, split, level)
        if not self.b.tiling.shape(op.out) and not self.b.lane_dim(value.name):
            self.number(stage, op, value, tile, level)
            return
        dims = tuple(d for d in source.dims if d not in inside)
        if inside and dims:
            out = self.ub.new(value, dims, split, level, use=self.ub.use(value.name))
            axis = -1 if inside[-1] == source.dims[-1] else 0
            self.b.add(level, stage.name, f"T.reduce_{REDUCE[op.fn]}({tile.name}, {out.name}, dim={axis})")
        else:
            out = tile
        if self.b.structure.accumulates(stage, op):
            out = self.accumulate(stage, op, value, out, level)
        elif out is tile:
            plain = bool(self.b.lane_dim(value.name)) and self.ub.may_serve(tile.name, "out")
            out = self.ub.used(tile, level, "out") if plain else self.results.copied(stage, value, tile, level)
        if self.b.lane_dim(value.name):
            self.results.store(stage, value, out, split, "epilogue" if self.b.structure.accumulates(stage, op) else level)
            return
        self.results.finish(stage, op, value, out, split, level)

    def number(self, stage: Stage, op: Op, value: Value, tile: Tile, level: Level) -> None:
        """A tile reduced to one number, as vectors as long as the tiles that it meets: the row repeated, and all copies reduced."""
        if len(tile.dims) == 2:
            row = self.ub.new(Value(value.name, (), value.dtype), tile.dims[:1], "", level, f"{value.name}_row_ub")
            self.b.add(level, stage.name, f"T.reduce_{REDUCE[op.fn]}({tile.name}, {row.name}, dim=-1)")
            tile = row
        for dims, split in self.meetings(value.name):
            rows = self.ub.free((self.b.extent(dims[0], split), *tile.buffer.shape), value.dtype, f"{value.name}_rows_ub", level)
            out = self.ub.kept_tile(value, dims, split, f"{value.name}_ub")
            self.b.add(level, stage.name, f"T.tile.broadcast({rows.name}, {tile.name}, axis=0)")
            self.b.add(level, stage.name, f"T.reduce_{REDUCE[op.fn]}({rows.name}, {out.name}, dim=-1)")
            self.ub.tiles[(value.name, split, dims)] = out
            self.ub.moving.update([out.name] if level == "body" else [])
            self.ub.pool.append(rows)

    def meetings(self, value: str) -> list[tuple[tuple[str, ...], str]]:
        """The vectors that a number is wanted as: the first dim of every tile that it meets, and how that is shared."""
        found: list[tuple[tuple[str, ...], str]] = []
        for _, op in self.b.structure.readers.get(value, ()):
            dims = self.b.tiling.shape(op.out)
            found += [(dims[:1], self.ub.split(op.out))] if dims else self.meetings(op.out)
        return list(dict.fromkeys(found))

    def accumulate(self, stage: Stage, op: Op, value: Value, part: Tile, level: Level) -> Tile:
        total = self.ub.kept_tile(value, part.dims, part.split, f"{value.name}_acc_ub")
        self.b.add("prologue", stage.name, f"T.tile.fill({total.name}, {NEUTRAL[op.fn]})")
        self.b.add(level, stage.name, f"T.tile.{COMBINE[op.fn]}({total.name}, {total.name}, {part.name})")
        return total
