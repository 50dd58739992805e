"""The tile code of one Vector operation whose operands are in UB, as source lines."""

from __future__ import annotations

from dataclasses import dataclass

from fusion.emit.builder import KernelBuilder, Tile
from fusion.emit.conditions import Conditions
from fusion.emit.tile_ops import TILE_OPS, Operand, difference
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
        args = [self.constant(a, out) for a in args]
        if op.fn == "where":
            return self.masks.where(op.where, out, args, split)
        if op.fn in ("ge", "lt"):
            return self.compare(op, out, args)
        if op.fn == "select":
            return self.masks.in_float(out, args[1:], lambda tile, operands: self.select(tile, args[0], operands))
        if op.fn == "cast":
            return self.ub.cast(str(args[0]), out.buffer)
        if op.fn == "index":
            return self.positions(op.over[0], out, split)
        if op.fn == "copy":
            return self.ub.moved(str(args[0]), out.buffer) if args[0] != out.name else []
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
        if op.fn == "div" and not isinstance(args[0], str):
            ones = self.ub.scratch(out, "ones_ub")
            return [f"T.tile.fill({ones}, {args[0]})", f"T.tile.div({out.name}, {ones}, {args[1]})"]
        emit = TILE_OPS[op.fn]
        assert emit is not None
        return emit(out.name, args)

    def constant(self, arg: Operand, out: Tile) -> Operand:
        """A number as the result's dtype writes it."""
        return arg if isinstance(arg, str) or out.buffer.dtype != "int32" else int(arg)

    def select(self, out: Tile, mask: Operand, args: list[Operand]) -> list[str]:
        mode = "VSEL_TENSOR_TENSOR_MODE" if isinstance(args[1], str) else "VSEL_TENSOR_SCALAR_MODE"
        return [f'T.tile.select({out.name}, {mask}, {args[0]}, {args[1]}, "{mode}")']

    def compare(self, op: Op, out: Tile, args: list[Operand]) -> list[str]:
        """Bits of a comparison; integers by the sign of their difference, since the Vector unit orders floats only."""
        source = self.b.buffers[str(args[0])]
        if source.dtype != "int32":
            return [f'T.tile.compare({out.name}, {args[0]}, {self.scalar(args[1])}, "{op.fn.upper()}")']
        apart = self.ub.scratch_of(source.shape, "int32", "apart_ub")
        sign = self.ub.scratch_of(source.shape, "float32", "float32_ub")
        other = args[1] if isinstance(args[1], str) else int(args[1])
        return [
            *difference(apart, [source.name, other]),
            f"T.copy({apart}, {sign})",
            f'T.tile.compare({out.name}, {sign}, T.float32(0.0), "{op.fn.upper()}")',
        ]

    def positions(self, dim: str, out: Tile, split: str) -> list[str]:
        """Indices along a dim: a progression where the tile has the dim, else one number."""
        start = self.b.rows_text(dim, split)
        if dim not in out.dims:
            return [f"T.tile.fill({out.name}, {start})"]
        return [f"T.tile.arith_progression({out.name}, {start}, 1, {out.buffer.shape[0]})"]

    def scalar(self, arg: Operand) -> str:
        return arg if isinstance(arg, str) else f"T.float32({arg})"
