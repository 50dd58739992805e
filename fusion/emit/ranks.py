"""The largest of each row with their places: rows of a tile sorted one after the other.

Equal values keep their order: the device's sort of 32 elements and its merge both document that the earlier one comes first.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fusion.emit.builder import KernelBuilder, Tile
from fusion.emit.conditions import Conditions
from fusion.emit.formula import base_name
from fusion.emit.operands import Operands
from fusion.emit.results import Results
from fusion.emit.ub import UnifiedBuffer
from fusion.graph import Op, Stage, Value
from fusion.graph.ops import OPS
from fusion.plan.tiling import Tiling, round_up
from fusion.plan.types import Level

SORTED = 32  # elements that the first step of a sort orders at once
EVERY_SECOND = {"topk": "P0101", "topk_index": "P1010"}  # of the pairs of value and place that a sort gives: which pattern takes which


def ranks(op: Op) -> bool:
    return OPS[op.fn].form == "topk"


def ranked_row(tiling: Tiling, op: Op) -> int:
    """Elements of the buffer in which a row is sorted."""
    return round_up(max(tiling.tile(op.over[0]), tiling.tile(op.attr)), SORTED)


@dataclass
class Ranks:
    """Writes top-k. The values and the places of the same rows come from one sort; `ready` holds the tiles of what comes later."""

    ub: UnifiedBuffer
    masks: Conditions
    operands: Operands
    results: Results
    ready: dict[str, Tile] = field(default_factory=dict[str, Tile])

    @property
    def b(self) -> KernelBuilder:
        return self.ub.b

    def rank(self, stage: Stage, op: Op, value: Value, level: Level) -> None:
        """Sorts a copy of each row, since sorting puts -inf behind its end, and takes what is wanted from the best pairs."""
        split = self.ub.split(op.out)
        if value.name not in self.ready:
            source = self.operands.fetch(stage, op.reads[0], self.b.tiling.shape(op.reads[0]), split, level)
            self.sort(stage, self.together(stage, op), self.in_float(stage, source, level), split, level)
        out = self.ready.pop(value.name)
        if tail := self.masks.tail_conditions(value):
            self.b.add(level, stage.name, *self.masks.where(tail, out, [out.name, 0.0], split))
        self.results.finish(stage, op, value, out, split, level)

    def together(self, stage: Stage, op: Op) -> list[Op]:
        """An operation and those of its stage that rank the same rows, shared alike."""

        def same(o: Op) -> bool:
            return (o.args, o.over, o.attr, self.ub.split(o.out)) == (op.args, op.over, op.attr, self.ub.split(op.out))

        return [op, *(o for o in stage.body if ranks(o) and o is not op and same(o))]

    def in_float(self, stage: Stage, source: Tile, level: Level) -> Tile:
        """The rows in float32, which is what is sorted."""
        if source.buffer.dtype == "float32":
            return source
        wide = self.b.buffers[self.ub.scratch_of(source.buffer.shape, "float32", "ranked_ub")]
        self.b.add(level, stage.name, *self.ub.cast(source.name, wide))
        return Tile(wide, source.dims, source.split)

    def sort(self, stage: Stage, ops: list[Op], source: Tile, split: str, level: Level) -> None:
        """The tiles of all operations, row by row.

        A tile that may be stored is cleared first: only so does the compiler let the loop wait for the store of the round before.
        """
        b, (dim,), count = self.b, ops[0].over, round_up(self.b.tiling.tile(ops[0].attr), SORTED)
        line = self.ub.scratch_of((ranked_row(b.tiling, ops[0]),), "float32", "line_ub")
        pairs = self.ub.scratch_of((2 * count,), "float32", "pairs_ub")
        row, rows = f"{base_name(ops[0].out)}_row", source.dims[:-1]
        at = f"{row}, " if rows else ""
        lines = [
            f"T.copy({source.name}[{at}0:block_{dim}], {line}[0:block_{dim}])",
            f"T.tile.topk({pairs}, {line}, {count}, {b.tiling.graph.dim(dim).size})",
        ]
        after: list[str] = []
        for op in ops:
            b.explain(level, stage.name, op)
            value = b.tiling.graph.value(op.out)
            out = self.ready[op.out] = self.ub.new(value, b.tiling.shape(op.out), split, level, use=self.ub.use(op.out))
            found, wide = self.ub.scratch_of((count,), "float32", f"{op.fn}_ub"), out.name
            if out.buffer.dtype == "float32":
                b.add(level, stage.name, *self.ub.zeroed(out.buffer))
            else:
                wide = self.ub.scratch_of(out.buffer.shape, "float32", f"{op.fn}_rows_ub")
                after += self.ub.cast(wide, out.buffer)
            lines.append(f'T.tile.gather_mask({found}, {pairs}, "{EVERY_SECOND[op.fn]}")')
            lines.append(f"T.copy({found}[0:block_{op.attr}], {wide}[{at}0:block_{op.attr}])")
        head = [f"for {row} in T.serial({b.extent_text(rows[0], split)}):"] if rows else []
        b.add(level, stage.name, *head, *(f"    {x}" if rows else x for x in lines), *after)
