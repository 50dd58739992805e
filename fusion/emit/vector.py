"""Vector stages as tile code in UB: loads, broadcasts, masks, reductions, states and stores."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from fusion.emit.builder import LEVELS, KernelBuilder, Tile
from fusion.emit.expr import affine
from fusion.emit.program import Line, TileBuffer
from fusion.emit.tile_ops import TILE_OPS, Operand
from fusion.graph import Affine, Op, Stage, Value
from fusion.graph.ops import OPS
from fusion.plan.tiling import FRACTAL, round_up
from fusion.plan.types import Handoff, Level

Use = Literal["", "in", "out"]  # of a buffer: neither loaded nor stored, loaded, stored

NEUTRAL = {"sum": 0.0, "amax": -1.0e30, "amin": 1.0e30}
COMPARE_ELEMENTS = 64  # a comparison works on whole repeats of 256 bytes
REDUCE = {"sum": "sum", "amax": "max", "amin": "min"}
COMBINE = {"sum": "add", "amax": "max", "amin": "min"}


@dataclass
class VectorEmitter:
    """Writes the Vector operations of one kernel. `tiles` holds what is in UB now, by (value, split, dims of use)."""

    b: KernelBuilder
    tiles: dict[tuple[str, str, tuple[str, ...]], Tile] = field(default_factory=dict[tuple[str, str, tuple[str, ...]], Tile])
    kept: set[str] = field(default_factory=set[str])  # buffers that outlive the level
    pool: list[TileBuffer] = field(default_factory=list[TileBuffer])
    uses: dict[str, Use] = field(default_factory=dict[str, Use])
    born: dict[str, Level] = field(default_factory=dict[str, Level])
    ranks: dict[tuple[tuple[tuple[str, int], ...], tuple[str, ...], str], Tile] = field(
        default_factory=dict[tuple[tuple[tuple[str, int], ...], tuple[str, ...], str], Tile]
    )
    looped: set[str] = field(default_factory=set[str])  # buffers of iterations that serve again after the loop
    mask: dict[int, TileBuffer] = field(default_factory=dict[int, TileBuffer])
    moving: set[str] = field(default_factory=set[str])  # buffers written again in every iteration
    state_names: dict[str, str] = field(default_factory=dict[str, str])  # buffers of states, and what the state is carried to
    state_tiles: dict[str, Tile] = field(default_factory=dict[str, Tile])
    last_use: dict[str, int] = field(default_factory=dict[str, int])  # position of the last operation that needs a value's tile
    now: int = 0

    # ---- one operation

    def emit(self, stage: Stage, op: Op, level: Level, position: int) -> None:
        """Writes an operation, what it needs before, and the store or handoff of its result."""
        self.now = position
        if level == "epilogue":
            self.expire()
        value = self.b.tiling.graph.value(op.out)
        if op.out in self.b.tiling.graph.silent or (op.out in self.b.tiling.graph.slices and not self.leaves(op.out)):
            return  # loaded where it is used
        if not self.b.tiling.shape(op.out) and OPS[op.fn].form != "reduce":
            return  # a number for each block: worked out as a vector where it meets a tile
        self.b.add(level, stage.name, f"# {formula(op)}")
        form = OPS[op.fn].form
        if op.out in self.b.tiling.graph.slices:
            loaded = self.fetch(stage, op.out, self.b.tiling.shape(op.out), "", level)
            self.finish(stage, op, value, self.copied(stage, value, loaded, level), "", level)
        elif form == "reduce":
            self.reduce(stage, op, value, level)
        else:
            self.map(stage, op, value, level)

    def expire(self) -> None:
        """After the loop the buffers of its iterations are free."""
        free = [n for n, level in self.born.items() if level == "body" and n not in self.kept and n not in self.state_names]
        self.tiles = {k: t for k, t in self.tiles.items() if t.name not in free}
        self.pool += [self.b.buffers[n] for n in free if self.b.buffers[n] not in self.pool]
        self.born.update(dict.fromkeys(free, "epilogue"))
        self.looped.update((*free, *self.state_names))

    def split(self, out: str) -> str:
        """The dim that two Vector cores share in the operation that makes a value."""
        shares = self.b.structure.split
        return shares.get(out, "") if shares and self.b.kernel.threads == 2 else ""

    # ---- buffers

    def new(self, value: Value, dims: tuple[str, ...], split: str, level: Level, name: str = "", use: Use = "") -> Tile:
        """A buffer for a tile: a free one of the same shape and dtype, or a new one. `use` tells what is loaded from GM or stored to it.

        The compiler does not order the load of an iteration after the store of the one before: no buffer is used for both.
        """
        shape = tuple(self.b.extent(d, split) for d in dims)
        if value.dtype == "bool":
            shape, dtype = (max(32, -(-prod(shape) // 8)),), "uint8"
        else:
            dtype = value.dtype
        for i, buffer in enumerate(self.pool):
            free = self.born[buffer.name] in (level, "prologue") and buffer.name not in self.kept
            if buffer.shape == shape and buffer.dtype == dtype and free and self.may_serve(buffer.name, use):
                return self.used(Tile(self.pool.pop(i), dims, split), level, use)
        made = self.b.buffer(name or f"{value.name}_ub", "ub", shape, dtype)
        return self.used(Tile(made, dims, split), level, use)

    def used(self, tile: Tile, level: Level, use: Use) -> Tile:
        self.born[tile.name] = level
        if use:
            self.uses.setdefault(tile.name, use)
        return tile

    @property
    def repeats(self) -> bool:
        """Whether anything in the kernel runs more than once."""
        return bool(self.b.kernel.loops) or self.b.kernel.persistent

    def may_serve(self, buffer: str, use: Use) -> bool:
        """Whether a buffer may be used for a load or a store, for what it was used before."""
        if use == "out" and self.b.kernel.persistent and buffer in self.looped:
            return False
        return not use or self.uses.get(buffer, use) == use or not self.repeats

    def leaves(self, value: str) -> bool:
        """Whether the value's tile goes to GM."""
        return value in self.b.structure.stored or self.b.handoff(value) is not None

    def use(self, value: str) -> Use:
        return "out" if self.leaves(value) else ""

    def release_dead(self, op: Op, level: Level, keep: str = "") -> None:
        """Frees the buffers of operands that nothing reads any more."""
        for r in op.reads:
            if self.dies(r) and r not in self.b.structure.states:
                for key in [k for k in self.tiles if k[0] == r]:
                    buffer = self.tiles[key].buffer
                    shared = any(t.buffer is buffer for k, t in self.tiles.items() if k != key)
                    if buffer.name != keep and not shared and buffer.name not in self.kept and self.born[buffer.name] == level:
                        self.pool.append(buffer)
                        del self.tiles[key]

    def dies(self, value: str) -> bool:
        """Whether the current operation is the last of the kernel that needs the value's tile."""
        return self.last_use.get(value, -1) <= self.now

    # ---- operands

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
        found = self.tiles.get((value, part, as_lanes))
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
        out = self.kept_tile(v, dims, split, f"{v.name}_ub")
        self.b.add(level, stage.name, f"# {formula(op)}", *self.code(op, out, args, split))
        self.tiles[(v.name, split, dims)] = out
        self.moving.update([out.name] if level == "body" else [])
        return out

    def load(self, stage: Stage, v: Value, dims: tuple[str, ...], split: str, level: Level) -> Tile:
        """GM -> UB, as early as the value's dims allow if the kernel loops."""
        moving = any(d in self.b.kernel.loops for d in v.dims)
        at: Level = "prologue" if level == "body" and not moving else level
        tile = self.new(v, dims, split, at, use="in")
        if at != level:
            self.kept.add(tile.name)
        part = self.b.tiling.graph.slices.get(v.name)
        source = self.b.tiling.graph.value(part.source) if part else v
        self.b.param(source, "input", part=part)
        lanes = f"0:{self.b.extent_text(dims[0], split)}" if dims else "0:16"
        self.b.add(at, stage.name, f"T.copy({self.b.region(source, split, part, lanes)}, {tile.name})")
        self.tiles[(v.name, split, dims)] = tile
        return tile

    def take_over(self, stage: Stage, v: Value, split: str, level: Level) -> Tile:
        """Cube -> Vector: this core's part of the Cube's tile."""
        handoff = self.b.handoff(v.name)
        assert handoff is not None, f"no handoff for {v.name}"
        dims = self.b.tiling.shape(v.name)
        relay = handoff.kind == "relay"  # the compiler copies before the first use of the buffer: it must have no other
        tile = self.kept_tile(v, dims, split, f"{v.name}_ub") if relay else self.new(v, dims, split, level, use="in")
        source = self.b.relays[v.name] if relay else self.b.handoff_region(handoff, v, split)
        self.b.add(level, stage.name, f"T.copy({source}, {tile.name})")
        self.tiles[(v.name, split, tile.dims)] = tile
        if handoff.free:
            self.tell_free(stage, handoff, tile, level)
        return tile

    def tell_free(self, stage: Stage, handoff: Handoff, tile: Tile, level: Level) -> None:
        """Sends a corner of the tile back: once it is there, the tile has been read."""
        corner = ", ".join(f"0:{FRACTAL}" for _ in tile.dims)
        shape = tuple(FRACTAL for _ in tile.dims)
        small = self.b.buffer(f"{handoff.value}_read_ub", "ub", shape, "float16")
        self.kept.add(small.name)
        self.born[small.name] = "prologue"
        half = f"vid * {FRACTAL} : vid * {FRACTAL} + {FRACTAL}" if tile.split else f"0:{FRACTAL}"
        self.b.add(level, stage.name, f"# tell that {handoff.name} has been read", f"T.copy({tile.name}[{corner}], {small.name})")
        self.b.add(level, stage.name, f"T.copy({small.name}, {self.b.free_name(handoff)}[cid, {half}, 0:{FRACTAL}])")

    def wait_free(self, stage: Stage, handoff: Handoff) -> None:
        """Reads the corner that the Cube sends back, at the end of the iteration."""
        small = self.b.buffer(f"{handoff.value}_free_ub", "ub", (FRACTAL, FRACTAL), "float32")
        self.kept.add(small.name)
        self.b.closing.append(Line(f"T.copy({self.b.free_name(handoff)}[cid, 0:{FRACTAL}, 0:{FRACTAL}], {small.name})", stage.name))

    def broadcast(self, stage: Stage, value: str, tile: Tile, dims: tuple[str, ...], split: str, level: Level) -> Tile:
        """The tile repeated to the dims of the result; once before the loop if it does not change there."""
        if tile.dims == dims:
            return tile
        key = (value, split, dims)
        if key in self.tiles:
            return self.tiles[key]
        born = self.born[tile.name]
        at = born if born == "prologue" and tile.name not in self.moving else level
        v = self.b.tiling.graph.value(value)
        wide = self.new(Value(v.name, v.dims, v.dtype), dims, split, at, f"{value}_2d_ub")
        axis = 1 if tile.dims == dims[:1] else 0
        self.b.add(at, stage.name, f"T.tile.broadcast({wide.name}, {tile.name}, axis={axis})")
        if at != level:
            self.kept.update((wide.name, tile.name))
        self.tiles[key] = wide
        return wide

    def wide_mask(self, stage: Stage, value: str, mask: Tile, dims: tuple[str, ...], split: str, level: Level) -> str:
        """The bits of a comparison for a wider tile: as 1.0 and 0.0 they can be repeated, and compared again."""
        bits = Value(value, (), "float32")
        line = self.new(bits, mask.dims, split, level, f"{value}_line_ub")
        self.b.add(level, stage.name, f"T.tile.fill({line.name}, 1.0)")
        self.b.add(level, stage.name, f'T.tile.select({line.name}, {mask.name}, {line.name}, 0.0, "VSEL_TENSOR_SCALAR_MODE")')
        wide = self.new(bits, dims, split, level, f"{value}_2d_ub")
        self.b.add(level, stage.name, f"T.tile.broadcast({wide.name}, {line.name}, axis={1 if mask.dims == dims[:1] else 0})")
        out = self.new(self.b.tiling.graph.value(value), dims, split, level, f"{value}_wide_ub")
        self.b.add(level, stage.name, f'T.tile.compare({out.name}, {wide.name}, T.float32(0.5), "GE")')
        self.pool += [line.buffer, wide.buffer]
        return out.name

    # ---- elementwise

    def map(self, stage: Stage, op: Op, value: Value, level: Level) -> None:
        split, dims = self.split(op.out), self.b.tiling.shape(op.out)
        args = [self.operand(stage, op, a, dims, split, level) for a in op.args]
        if op.fn == "cast" and self.tail_conditions(value) and isinstance(args[0], str):
            args[0] = self.cleared(stage, op, args[0], dims, split, level)
        out = self.result(op, value, dims, split, level, args)
        if out.name in args:
            self.forget(out.buffer, op.out)
        self.b.add(level, stage.name, *self.code(op, out, args, split))
        self.finish(stage, op, value, out, split, level)

    def forget(self, buffer: TileBuffer, new_value: str) -> None:
        for key in [k for k, t in self.tiles.items() if t.buffer is buffer and k[0] != new_value]:
            del self.tiles[key]

    def result(self, op: Op, value: Value, dims: tuple[str, ...], split: str, level: Level, args: list[Operand]) -> Tile:
        """Where the result goes: over an operand that dies here, or to another buffer."""
        if op.fn not in ("select", "ge", "lt", "cast", "copy"):
            for a, name in zip(op.args, args, strict=True):
                if isinstance(a, str) and isinstance(name, str) and self.dies(a) and self.reusable(name, a, op, dims, split, level):
                    return self.used(Tile(self.b.buffers[name], dims, split), self.born[name], self.use(op.out))
        self.release_dead(op, level)
        return self.new(value, dims, split, level, use=self.use(op.out))

    def reusable(self, name: str, arg: str, op: Op, dims: tuple[str, ...], split: str, level: Level) -> bool:
        """Whether the result fits over the operand's buffer and nothing else needs that."""
        buffer = self.b.buffers[name]
        value = self.b.tiling.graph.value(op.out)
        fits = buffer.dtype == value.dtype and buffer.shape == tuple(self.b.extent(d, split) for d in dims)
        others = [k for k, t in self.tiles.items() if t.buffer is buffer and k[0] != arg]
        fits &= self.may_serve(name, self.use(op.out))
        if name in self.state_names and level != "epilogue":
            return fits and not others and op.out in self.chain(self.state_names[name])
        done = name in self.state_names or (name not in self.kept and self.born.get(name) == level)
        return fits and done and not others

    def chain(self, value: str) -> set[str]:
        """A value and those before it that only lead to it: what may be worked out in a state's own buffer."""
        found, front = {value}, [value]
        while front:
            _, op = self.b.structure.made[front.pop()]
            single = [r for r in op.reads if r in self.b.structure.made and len(self.b.structure.readers[r]) == 1]
            front += single
            found.update(single)
        return found

    def code(self, op: Op, out: Tile, args: list[Operand], split: str) -> list[str]:
        if op.fn == "where":
            return self.where(op.where, out, args, split)
        if op.fn in ("ge", "lt"):
            return [f'T.tile.compare({out.name}, {args[0]}, {self.scalar(args[1])}, "{op.fn.upper()}")']
        if op.fn == "select":
            mode = "VSEL_TENSOR_SCALAR_MODE" if isinstance(args[2], float) else "VSEL_TENSOR_TENSOR_MODE"
            return [f'T.tile.select({out.name}, {args[0]}, {args[1]}, {args[2]}, "{mode}")']
        if op.fn == "rsqrt":
            ones = self.scratch(out, "ones_ub")
            return [f"T.tile.sqrt({out.name}, {args[0]})", f"T.tile.fill({ones}, 1.0)", f"T.tile.div({out.name}, {ones}, {out.name})"]
        if op.fn == "sigmoid":
            ones = self.scratch(out, "ones_ub")
            return [
                f"T.tile.mul({out.name}, {args[0]}, -1.0)",
                f"T.tile.exp({out.name}, {out.name})",
                f"T.tile.add({out.name}, {out.name}, 1.0)",
                f"T.tile.fill({ones}, 1.0)",
                f"T.tile.div({out.name}, {ones}, {out.name})",
            ]
        if op.fn == "div" and isinstance(args[0], float):
            ones = self.scratch(out, "ones_ub")
            return [f"T.tile.fill({ones}, {args[0]})", f"T.tile.div({out.name}, {ones}, {args[1]})"]
        emit = TILE_OPS[op.fn]
        assert emit is not None
        return emit(out.name, args)

    def scalar(self, arg: Operand) -> str:
        return arg if isinstance(arg, str) else f"T.float32({arg})"

    def scratch(self, like: Tile, name: str) -> str:
        """A buffer of the same shape that holds nothing from one line to the next operation."""
        for buffer in self.b.buffers.values():
            if buffer.name.startswith(name) and buffer.shape == like.buffer.shape and buffer.dtype == like.buffer.dtype:
                return buffer.name
        made = self.b.buffer(name, "ub", like.buffer.shape, like.buffer.dtype)
        self.kept.add(made.name)
        self.born[made.name] = "prologue"
        return made.name

    # ---- masks

    def where(self, conditions: tuple[Affine, ...], out: Tile, args: list[Operand], split: str) -> list[str]:
        """out = first operand where all conditions hold, else the second."""
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
        tile = self.kept_tile(like, dims, split, f"rank_{label}_ub", self.compared_rows(dims, split))
        lines, parts, helpers = list[str](), list[str](), list[TileBuffer]()
        for d, k in terms:
            line = self.kept_tile(like, (d,), split, f"{d}_rank_ub", tile.buffer.shape[dims.index(d)]) if len(dims) > 1 else tile
            lines.append(f"T.tile.arith_progression({line.name}, 0.0, {float(k)}, {line.buffer.shape[0]})")
            if len(dims) > 1:
                wide = self.borrowed(like, tile, f"{d}_rank_2d_ub") if parts else tile
                lines.append(f"T.tile.broadcast({wide.name}, {line.name}, axis={1 if dims[0] == d else 0})")
                parts.append(wide.name)
                helpers += [t.buffer for t in (line, wide) if t is not tile and t.name in self.kept]
        if not terms:
            lines.append(f"T.tile.fill({tile.name}, 0.0)")
        lines += [f"T.tile.add({tile.name}, {tile.name}, {p})" for p in parts[1:]]
        self.b.add("prologue", "", f"# positions inside of the tile: {affine([(d, k) for d, k in terms], 0)}", *lines)
        for buffer in helpers:
            self.kept.discard(buffer.name)
            self.pool.append(buffer)
        return tile

    def borrowed(self, value: Value, like: Tile, name: str) -> Tile:
        """A buffer for the time before the loop: one that only the loop uses, or a new one."""
        for buffer in self.b.buffers.values():
            free = self.born.get(buffer.name) == "body" and buffer.name not in self.kept and self.uses.get(buffer.name) != "out"
            if free and buffer.shape == like.buffer.shape and buffer.dtype == value.dtype:
                return Tile(buffer, like.dims, like.split)
        return self.kept_tile(value, like.dims, like.split, name, like.buffer.shape[0])

    def compared_rows(self, dims: tuple[str, ...], split: str) -> int:
        """Rows of a tile to compare, so that they are whole repeats."""
        width = prod(tuple(self.b.extent(d, split) for d in dims[1:]))
        return round_up(self.b.extent(dims[0], split), COMPARE_ELEMENTS // math.gcd(width, COMPARE_ELEMENTS))

    def kept_tile(self, like: Value, dims: tuple[str, ...], split: str, name: str, rows: int = 0) -> Tile:
        """A buffer that outlives the level; `rows` instead of the tile's own if that is given."""
        shape = tuple(self.b.extent(d, split) for d in dims)
        shape = (rows, *shape[1:]) if rows else shape
        made = self.b.buffer(name, "ub", shape, like.dtype)
        self.kept.add(made.name)
        self.born[made.name] = "prologue"
        return Tile(made, dims, split)

    def mask_buffer(self, rank: TileBuffer) -> str:
        size = prod(rank.shape)
        if size not in self.mask:
            self.mask[size] = self.b.buffer("mask_ub", "ub", (max(32, -(-size // 8)),), "uint8")
        return self.mask[size].name

    def tail_conditions(self, value: Value) -> tuple[Affine, ...]:
        """Conditions that keep what lies beyond a dim's end out of later sums over it."""
        return self.inside(tuple(d for d in self.b.tiling.shape(value.name) if self.tail_matters(value, d)))

    def inside(self, dims: tuple[str, ...]) -> tuple[Affine, ...]:
        """The conditions that an index is within each dim."""
        return tuple(Affine(((d, -1),), self.b.tiling.graph.dim(d).size - 1) for d in dims)

    def tail_matters(self, value: Value, dim: str) -> bool:
        if not self.b.tiling.has_tail(dim):
            return False
        leaves = self.leaves(value.name)
        users = (o for s in self.b.tiling.graph.stages for o in s.body if value.name in o.reads and dim in o.over)
        return leaves and any(True for _ in users)

    def cleared(self, stage: Stage, op: Op, source: str, dims: tuple[str, ...], split: str, level: Level, to: float = 0.0) -> str:
        """The operand with everything beyond the dims' ends replaced, in a scratch buffer."""
        like = Tile(self.b.buffers[source], dims, split)
        out = Tile(self.b.buffers[self.scratch(like, "tail_ub")], dims, split)
        conditions = self.tail_conditions(self.b.tiling.graph.value(op.out))
        self.b.add(level, stage.name, *self.where(conditions, out, [source, to], split))
        return out.name

    # ---- reductions

    def reduce(self, stage: Stage, op: Op, value: Value, level: Level) -> None:
        """Within the tile first, then over the loops into a buffer that lives across them."""
        split, source_name = self.split(op.out), op.reads[0]
        source_dims = self.b.tiling.shape(source_name) or self.b.tiling.shape(op.out)
        source = self.fetch(stage, source_name, source_dims, split, level)
        inside = tuple(d for d in op.over if d in source.dims)
        tile = self.without_tail(stage, op, source, inside, split, level)
        if not self.b.tiling.shape(op.out) and not self.b.lane_dim(value.name):
            self.number(stage, op, value, tile, level)
            return
        dims = tuple(d for d in source.dims if d not in inside)
        if inside and dims:
            out = self.new(value, dims, split, level, use=self.use(value.name))
            axis = -1 if inside[-1] == source.dims[-1] else 0
            self.b.add(level, stage.name, f"T.reduce_{REDUCE[op.fn]}({tile.name}, {out.name}, dim={axis})")
        else:
            out = tile
        if self.b.structure.accumulates(stage, op):
            out = self.accumulate(stage, op, value, out, level)
        elif out is tile and not self.b.lane_dim(value.name):
            out = self.copied(stage, value, tile, level)
        if self.b.lane_dim(value.name):
            self.store(stage, value, out, split, "epilogue" if self.b.structure.accumulates(stage, op) else level)
            return
        self.finish(stage, op, value, out, split, level)

    def number(self, stage: Stage, op: Op, value: Value, tile: Tile, level: Level) -> None:
        """A tile reduced to one number, as vectors as long as the tiles that it meets: the row repeated, and all copies reduced."""
        if len(tile.dims) == 2:
            row = self.new(Value(value.name, (), value.dtype), tile.dims[:1], "", level, f"{value.name}_row_ub")
            self.b.add(level, stage.name, f"T.reduce_{REDUCE[op.fn]}({tile.name}, {row.name}, dim=-1)")
            tile = row
        for dims, split in self.meetings(value.name):
            rows = self.b.buffer(f"{value.name}_rows_ub", "ub", (self.b.extent(dims[0], split), *tile.buffer.shape), value.dtype)
            out = self.kept_tile(value, dims, split, f"{value.name}_ub")
            self.b.add(level, stage.name, f"T.tile.broadcast({rows.name}, {tile.name}, axis=0)")
            self.b.add(level, stage.name, f"T.reduce_{REDUCE[op.fn]}({rows.name}, {out.name}, dim=-1)")
            self.tiles[(value.name, split, dims)] = out
            self.moving.update([out.name] if level == "body" else [])
            self.pool.append(self.used(Tile(rows, (), ""), level, "").buffer)

    def meetings(self, value: str) -> list[tuple[tuple[str, ...], str]]:
        """The vectors that a number is wanted as: the first dim of every tile that it meets, and how that is shared."""
        found: list[tuple[tuple[str, ...], str]] = []
        for _, op in self.b.structure.readers.get(value, ()):
            dims = self.b.tiling.shape(op.out)
            found += [(dims[:1], self.split(op.out))] if dims else self.meetings(op.out)
        return list(dict.fromkeys(found))

    def copied(self, stage: Stage, value: Value, tile: Tile, level: Level) -> Tile:
        out = self.new(value, tile.dims, tile.split, level, use=self.use(value.name))
        self.b.add(level, stage.name, f"T.copy({tile.name}, {out.name})")
        return out

    def without_tail(self, stage: Stage, op: Op, source: Tile, inside: tuple[str, ...], split: str, level: Level) -> Tile:
        tails = [d for d in inside if self.b.tiling.has_tail(d)]
        if not tails:
            return source
        out = Tile(self.b.buffers[self.scratch(source, "tail_ub")], source.dims, split)
        self.b.add(level, stage.name, *self.where(self.inside(tuple(tails)), out, [source.name, NEUTRAL[op.fn]], split))
        return out

    def accumulate(self, stage: Stage, op: Op, value: Value, part: Tile, level: Level) -> Tile:
        total = self.kept_tile(value, part.dims, part.split, f"{value.name}_acc_ub")
        self.b.add("prologue", stage.name, f"T.tile.fill({total.name}, {NEUTRAL[op.fn]})")
        self.b.add(level, stage.name, f"T.tile.{COMBINE[op.fn]}({total.name}, {total.name}, {part.name})")
        return total

    # ---- results

    def finish(self, stage: Stage, op: Op, value: Value, out: Tile, split: str, level: Level) -> None:
        """Keeps the result for later operations, stores it, hands it to the Cube."""
        self.release_dead(op, level, out.name)
        self.tiles[(value.name, split if split in out.dims else "", out.dims)] = out
        if level == "body":
            self.moving.add(out.name)
        if self.read_later(value.name, level):
            self.kept.add(out.name)
        handoff = self.b.handoff(value.name)
        done: Level = "epilogue" if self.b.structure.complete_after_loop(value.name) else level
        out = self.leaving(stage, value, out, split, done)
        if handoff and handoff.direction == "vector->cube":
            self.b.add(level, stage.name, f"T.copy({out.name}, {self.way_to_cube(handoff, value, split)})")
            if handoff.free:
                self.wait_free(stage, handoff)
        if value.name in self.b.structure.stored and not (handoff and self.b.through_global(handoff)):
            self.store(stage, value, out, split, done)

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
        readers = [o.out for s, o in self.b.structure.readers.get(value.name, ()) if s.unit == "vector"]
        read = any(self.b.structure.levels[r] == level for r in readers) or (level == "body" and value.name in self.b.structure.nexts)
        again = level == "body" or self.b.kernel.persistent or self.born.get(out.name) == level
        if not (self.leaves(value.name) and read and again):
            return out
        copy = self.new(value, out.dims, out.split, level, f"{value.name}_out_ub", "out")
        self.kept.add(copy.name)
        self.b.add(level, stage.name, f"T.copy({out.name}, {copy.name})")
        return copy

    def read_later(self, value: str, level: Level) -> bool:
        users = self.b.structure.readers.get(value, ())
        later = any(LEVELS.index(self.b.structure.levels[o.out]) > LEVELS.index(level) for _, o in users)
        done = self.b.structure.complete_after_loop(value) if value in self.b.structure.made else False
        return later or done

    def store(self, stage: Stage, value: Value, out: Tile, split: str, level: Level) -> None:
        """UB -> GM, atomically where other blocks add to the same place."""
        atomic = self.b.structure.atomic(value.name)
        self.b.param(value, "atomic" if atomic else "output")
        place, region = self.b.place(value, split), self.b.region(value, split)
        text = f"T.tile.atomic_add({place}, {out.name})" if atomic else f"T.copy({out.name}, {region})"
        self.b.add(level, stage.name, text)

    # ---- states of a scan

    def open_states(self) -> None:
        """Buffers and initial values of the scan's states, before the loop."""
        for carry in self.b.structure.states.values():
            v = self.b.tiling.graph.value(carry.state)
            stage = self.b.structure.made[carry.next][0]
            split, dims = self.split(carry.next), self.b.tiling.shape(carry.state)
            tile = self.kept_tile(v, dims, split if split in dims else "", f"{carry.state}_ub")
            self.tiles[(carry.state, tile.split, dims)] = tile
            self.moving.add(tile.name)
            self.state_names[tile.name] = carry.next
            self.state_tiles[carry.state] = tile
            if not isinstance(carry.init, str):
                self.b.add("prologue", stage.name, f"T.tile.fill({tile.name}, {float(carry.init)})")
            else:
                start = self.fetch(stage, carry.init, dims, tile.split, "prologue")
                start = self.broadcast(stage, carry.init, start, dims, tile.split, "prologue")
                self.b.add("prologue", stage.name, f"T.copy({start.name}, {tile.name})")

    def close_states(self) -> None:
        """At the end of a step every state takes the value that it is carried to."""
        for carry in self.b.structure.states.values():
            split, dims = self.split(carry.next), self.b.tiling.shape(carry.state)
            part = split if split in dims else ""
            old, new = self.state_tiles[carry.state], self.tiles.get((carry.next, part, dims))
            assert new is not None, f"{carry.next} is not in UB at the end of the step"
            if new.name != old.name:
                stage = self.b.structure.made[carry.next][0]
                self.b.add(self.b.structure.levels[carry.next], stage.name, f"T.copy({new.name}, {old.name})")
            self.tiles[(carry.next, part, dims)] = old


def prod(shape: tuple[int, ...]) -> int:
    total = 1
    for s in shape:
        total *= s
    return total


def formula(op: Op) -> str:
    """An operation as a short comment."""
    args = [a if isinstance(a, str) else f"{a:g}" for a in op.args]
    infix = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
    text = f"{args[0]} {infix[op.fn]} {args[1]}" if op.fn in infix else f"{op.fn}({', '.join(args)})"
    text += f" over {' '.join(op.over)}" if op.over else ""
    return f"{op.out} = {text}" + (f" where {', '.join(str(c) for c in op.where)}" if op.where else "")
