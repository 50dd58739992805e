"""Index conditions as tile code: positions inside of a tile, compared with a threshold, select between operands."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from fusion.emit.builder import KernelBuilder, Tile
from fusion.emit.expr import affine
from fusion.emit.program import TileBuffer
from fusion.emit.tile_ops import Operand
from fusion.emit.ub import UnifiedBuffer
from fusion.graph import Affine, Op, Stage, Value
from fusion.plan.tiling import REPEAT, round_up
from fusion.plan.types import Level

SELECTED = ("float32", "float16")  # dtypes that the Vector unit selects
NEUTRAL = {"sum": 0.0, "amax": -1.0e30, "amin": 1.0e30}
Rank = tuple[tuple[tuple[str, int], ...], tuple[str, ...], str]  # terms, dims of the tile, how it is shared


@dataclass
class Conditions:
    """Masks of index conditions and of tails. `ranks` are the tiles of positions made so far."""

    ub: UnifiedBuffer
    ranks: dict[Rank, Tile] = field(default_factory=dict[Rank, Tile])
    mask: dict[int, TileBuffer] = field(default_factory=dict[int, TileBuffer])

    @property
    def b(self) -> KernelBuilder:
        return self.ub.b

    def where(self, conditions: tuple[Affine, ...], out: Tile, args: list[Operand], split: str) -> list[str]:
        """out = first operand where all conditions hold, else the second."""
        return self.in_float(out, args, lambda tile, operands: self.where_float(conditions, tile, operands, split))

    def in_float(self, out: Tile, args: list[Operand], code: Callable[[Tile, list[Operand]], list[str]]) -> list[str]:
        """Selecting code for a result of any dtype: the Vector unit selects float32 and float16, others are taken there and back."""
        if out.buffer.dtype in SELECTED:
            return code(out, args)
        lines, operands = list[str](), list[Operand]()
        for i, a in enumerate(args):
            wide = self.ub.scratch_of(out.buffer.shape, "float32", f"select{i}_ub") if isinstance(a, str) else ""
            lines += self.ub.cast(a, self.b.buffers[wide]) if isinstance(a, str) else []
            operands.append(wide if isinstance(a, str) else float(a))
        result = Tile(self.b.buffers[self.ub.scratch_of(out.buffer.shape, "float32", "select0_ub")], out.dims, out.split)
        return [*lines, *code(result, operands), *self.ub.cast(result.name, out.buffer)]

    def where_float(self, conditions: tuple[Affine, ...], out: Tile, args: list[Operand], split: str) -> list[str]:
        lines, source = list[str](), args[0]
        for c in conditions:
            rank, sign = self.rank(c, out.dims, split)
            mask = self.mask_buffer(self.b.buffers[rank])
            threshold = affine([(t, -k * sign) for t, k in self.b.affine_starts(c, split)], -c.const * sign)
            lines.append(f'T.tile.compare({mask}, {rank}, T.float32({threshold}), "{"GE" if sign > 0 else "LE"}")')
            mode = "VSEL_TENSOR_SCALAR_MODE" if isinstance(args[1], float) else "VSEL_TENSOR_TENSOR_MODE"
            lines.append(f'T.tile.select({out.name}, {mask}, {source}, {args[1]}, "{mode}")')
            source = out.name
        return lines

    def rank(self, c: Affine, dims: tuple[str, ...], split: str) -> tuple[str, int]:
        """A tile holding the condition's terms for positions inside of the tile, and the sign with which it does; made once."""
        inner = tuple((d, k) for d, k in c.terms if d in dims)
        dims = dims[1:] if len(dims) > 1 and self.b.extent(dims[0], split) == 1 else dims  # a single row is a line
        inner = tuple((d, k) for d, k in inner if d in dims)
        sign = 1 if not inner or dict(inner)[next(d for d in dims if d in dict(inner))] > 0 else -1
        terms = tuple((d, k * sign) for d, k in inner)
        key = (terms, dims, split)
        if key not in self.ranks:
            self.ranks[key] = self.make_rank(terms, dims, split)
        return self.ranks[key].name, sign

    def make_rank(self, terms: tuple[tuple[str, int], ...], dims: tuple[str, ...], split: str) -> Tile:
        like = Value("rank", (), "float32")
        label = "_".join(d for d, _ in terms) or "none"
        tile = self.ub.kept_tile(like, dims, split, f"rank_{label}_ub", self.compared_rows(dims, split))
        lines, parts, helpers = list[str](), list[str](), list[TileBuffer]()
        for d, k in terms:
            line = self.ub.kept_tile(like, (d,), split, f"{d}_rank_ub", tile.buffer.shape[dims.index(d)]) if len(dims) > 1 else tile
            lines.append(f"T.tile.arith_progression({line.name}, 0.0, {float(k)}, {line.buffer.shape[0]})")
            if len(dims) > 1:
                wide = self.ub.borrowed(like, tile, f"{d}_rank_2d_ub") if parts else tile
                lines.append(f"T.tile.broadcast({wide.name}, {line.name}, axis={1 if dims[0] == d else 0})")
                parts.append(wide.name)
                helpers += [wide.buffer] if wide is not tile and wide.name in self.ub.kept else []
        if not terms:
            lines.append(f"T.tile.fill({tile.name}, 0.0)")
        lines += [f"T.tile.add({tile.name}, {tile.name}, {p})" for p in parts[1:]]
        self.b.add("prologue", "", f"# positions inside of the tile: {affine([(d, k) for d, k in terms], 0)}", *lines)
        for buffer in helpers:
            self.ub.kept.discard(buffer.name)
            self.ub.pool.append(buffer)
        return tile

    def compared_rows(self, dims: tuple[str, ...], split: str) -> int:
        """Rows of a tile to compare, so that they are whole repeats."""
        width = math.prod(tuple(self.b.extent(d, split) for d in dims[1:]))
        return round_up(self.b.extent(dims[0], split), REPEAT // math.gcd(width, REPEAT))

    def mask_buffer(self, rank: TileBuffer) -> str:
        size = math.prod(rank.shape)
        if size not in self.mask:
            self.mask[size] = self.b.buffer("mask_ub", "ub", (max(32, -(-size // 8)),), "uint8")
        return self.mask[size].name

    def inside(self, dims: tuple[str, ...]) -> tuple[Affine, ...]:
        """The conditions that an index is within each dim."""
        return tuple(Affine(((d, -1),), self.b.tiling.graph.dim(d).size - 1) for d in dims)

    def tail_conditions(self, value: Value) -> tuple[Affine, ...]:
        """Conditions that keep what lies beyond a dim's end out of later sums over it."""
        return self.inside(tuple(d for d in self.b.tiling.shape(value.name) if self.tail_matters(value, d)))

    def tail_matters(self, value: Value, dim: str) -> bool:
        if not self.b.tiling.has_tail(dim):
            return False
        leaves = self.ub.leaves(value.name)
        users = (o for s in self.b.tiling.graph.stages for o in s.body if value.name in o.reads and dim in o.over)
        return leaves and any(True for _ in users)

    def cleared(self, stage: Stage, op: Op, source: str, dims: tuple[str, ...], split: str, level: Level, to: float = 0.0) -> str:
        """The operand with everything beyond the dims' ends replaced, in a scratch buffer."""
        like = Tile(self.b.buffers[source], dims, split)
        out = Tile(self.b.buffers[self.ub.scratch(like, "tail_ub")], dims, split)
        conditions = self.tail_conditions(self.b.tiling.graph.value(op.out))
        self.b.add(level, stage.name, *self.where(conditions, out, [source, to], split))
        return out.name

    def without_tail(self, stage: Stage, op: Op, source: Tile, inside: tuple[str, ...], split: str, level: Level) -> Tile:
        tails = [d for d in inside if self.b.tiling.has_tail(d)]
        if not tails:
            return source
        out = Tile(self.b.buffers[self.ub.scratch(source, "tail_ub")], source.dims, split)
        self.b.add(level, stage.name, *self.where(self.inside(tuple(tails)), out, [source.name, NEUTRAL[op.fn]], split))
        return out
