"""Rows that an index in UB names, brought from GM one by one."""

from __future__ import annotations

from dataclasses import dataclass

from fusion.emit.formula import base_name
from fusion.emit.operands import Operands
from fusion.emit.results import Results
from fusion.emit.ub import UnifiedBuffer
from fusion.graph import Op, Stage, Value
from fusion.plan.types import Level


@dataclass
class Gathers:
    """Writes gathers. A row outside of the source is 0: the tile is cleared first and such a row left out."""

    ub: UnifiedBuffer
    operands: Operands
    results: Results

    def gather(self, stage: Stage, op: Op, value: Value, level: Level) -> None:
        """Each row of a tile where the index names rows, else the whole tile at the one index of the block."""
        b = self.ub.b
        rows, split, dims = b.tiling.graph.rows[op.out], self.ub.split(op.out), b.tiling.shape(op.out)
        index = self.operands.fetch(stage, rows.index, dims[:1], split, level)
        self.ub.release_dead(op, level)
        out = self.ub.new(value, dims, split, level, use=self.ub.use(value.name))
        b.param(b.tiling.graph.value(rows.source), "input", part=rows)
        row, at = (f"{base_name(value.name)}_{name}" for name in ("row", "at"))
        region, inside = b.row_region(rows, at, split), f"{at} >= 0 and {at} < {b.tiling.graph.dim(rows.dim).size}"
        b.add(level, stage.name, *self.ub.zeroed(out.buffer))
        if b.tiling.shape(rows.index):
            line = f"{out.name}[{row}, 0:{b.extent_text(dims[1], split)}]"
            b.add(level, stage.name, f"for {row} in T.serial({b.extent_text(dims[0], split)}):", f"    {at} = {index.name}[{row}]")
            b.add(level, stage.name, f"    if {inside}{self.before_end(row, dims[0], split)}:", f"        T.copy({region}, {line})")
        else:
            b.add(level, stage.name, f"{at} = {index.name}[0]", f"if {inside}:", f"    T.copy({region}, {out.name})")
        self.results.finish(stage, op, value, out, split, level)

    def before_end(self, row: str, dim: str, split: str) -> str:
        """The condition that a row of the tile is within the dim.

        No bound of the loop: where it ran no time, the compiler would not order what follows after the clearing.
        """
        if not self.ub.b.tiling.has_tail(dim):
            return ""
        return f" and {self.ub.b.rows_text(dim, split)} + {row} < {self.ub.b.tiling.graph.dim(dim).size}"
