"""The tile code of one Vector operation whose operands are in UB, as source lines."""

from __future__ import annotations

from dataclasses import dataclass

from fusion.emit.builder import KernelBuilder, Tile
from fusion.emit.conditions import Conditions
from fusion.emit.tile_ops import TILE_OPS, Operand
from fusion.emit.ub import UnifiedBuffer
from fusion.graph import Op


@dataclass
class Coder:
    """Writes operations; those that need a scratch buffer or a mask get one."""

    ub: UnifiedBuffer
    masks: Conditions

    @property
    def b(self) -> KernelBuilder:
        return self.ub.b

    def code(self, op: Op, out: Tile, args: list[Operand], split: str) -> list[str]:
        if op.fn == "where":
            return self.masks.where(op.where, out, args, split)
        if op.fn in ("ge", "lt"):
            return [f'T.tile.compare({out.name}, {args[0]}, {self.scalar(args[1])}, "{op.fn.upper()}")']
        if op.fn == "select":
            mode = "VSEL_TENSOR_SCALAR_MODE" if isinstance(args[2], float) else "VSEL_TENSOR_TENSOR_MODE"
            return [f'T.tile.select({out.name}, {args[0]}, {args[1]}, {args[2]}, "{mode}")']
        if op.fn == "rsqrt":
            ones = self.ub.scratch(out, "ones_ub")
            return [f"T.tile.sqrt({out.name}, {args[0]})", f"T.tile.fill({ones}, 1.0)", f"T.tile.div({out.name}, {ones}, {out.name})"]
        if op.fn == "sigmoid":
            ones = self.ub.scratch(out, "ones_ub")
            return [
                f"T.tile.mul({out.name}, {args[0]}, -1.0)",
                f"T.tile.exp({out.name}, {out.name})",
                f"T.tile.add({out.name}, {out.name}, 1.0)",
                f"T.tile.fill({ones}, 1.0)",
                f"T.tile.div({out.name}, {ones}, {out.name})",
            ]
        if op.fn == "div" and isinstance(args[0], float):
            ones = self.ub.scratch(out, "ones_ub")
            return [f"T.tile.fill({ones}, {args[0]})", f"T.tile.div({out.name}, {ones}, {args[1]})"]
        emit = TILE_OPS[op.fn]
        assert emit is not None
        return emit(out.name, args)

    def scalar(self, arg: Operand) -> str:
        return arg if isinstance(arg, str) else f"T.float32({arg})"
