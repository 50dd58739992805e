"""What is in UB: buffers, the tiles in them, and which buffers are free to be used again."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from fusion.emit.builder import KernelBuilder, Tile
from fusion.emit.casts import chain
from fusion.emit.program import DTYPE_BYTES, TileBuffer
from fusion.graph import Op, Value
from fusion.plan.types import Level

Use = Literal["", "in", "out"]  # of a buffer: neither loaded nor stored, loaded, stored
Scratch = tuple[str, tuple[int, ...], str]  # what for, shape, dtype
BLOCK = 32  # bytes that a copy inside of UB moves at once
Key = tuple[str, str, tuple[str, ...]]  # value, how two Vector cores share it, dims of use


@dataclass
class UnifiedBuffer:
    """The buffers of one kernel's Vector work. `tiles` holds what they hold now."""

    b: KernelBuilder
    tiles: dict[Key, Tile] = field(default_factory=dict[Key, Tile])
    kept: set[str] = field(default_factory=set[str])  # buffers that outlive the level
    pool: list[TileBuffer] = field(default_factory=list[TileBuffer])
    uses: dict[str, Use] = field(default_factory=dict[str, Use])
    born: dict[str, Level] = field(default_factory=dict[str, Level])
    looped: set[str] = field(default_factory=set[str])  # buffers of iterations that serve again after the loop
    moving: set[str] = field(default_factory=set[str])  # buffers written again in every iteration
    state_names: dict[str, str] = field(default_factory=dict[str, str])  # buffers of states, and what the state is carried to
    scratches: dict[Scratch, TileBuffer] = field(default_factory=dict[Scratch, TileBuffer])
    cleared: set[str] = field(default_factory=set[str])  # int8 buffers that start with zeros
    last_use: dict[str, int] = field(default_factory=dict[str, int])  # position of the last operation that needs a value's tile
    now: int = 0

    def new(self, value: Value, dims: tuple[str, ...], split: str, level: Level, name: str = "", use: Use = "") -> Tile:
        """A buffer for a tile: a free one of the same shape and dtype, or a new one. `use` tells what is loaded from GM or stored to it.

        The compiler does not order the load of an iteration after the store of the one before: no buffer is used for both.
        """
        shape = tuple(self.b.extent(d, split) for d in dims)
        if value.dtype == "bool":
            shape, dtype = (max(32, -(-math.prod(shape) // 8)),), "uint8"
        else:
            dtype = value.dtype
        return self.used(Tile(self.free(shape, dtype, name or f"{value.name}_ub", level, use), dims, split), level, use)

    def free(self, shape: tuple[int, ...], dtype: str, name: str, level: Level, use: Use = "") -> TileBuffer:
        """A buffer of a shape: a free one, or a new one."""
        for i, buffer in enumerate(self.pool):
            free = self.born[buffer.name] in (level, "prologue") and buffer.name not in self.kept
            if buffer.shape == shape and buffer.dtype == dtype and free and self.may_serve(buffer.name, use):
                self.born[buffer.name] = level
                return self.pool.pop(i)
        made = self.b.buffer(name, "ub", shape, dtype)
        self.born[made.name] = level
        return made

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

    def expire(self) -> None:
        """After the loop the buffers of its iterations are free."""
        free = [n for n, level in self.born.items() if level == "body" and n not in self.kept and n not in self.state_names]
        self.tiles = {k: t for k, t in self.tiles.items() if t.name not in free}
        self.pool += [self.b.buffers[n] for n in free if self.b.buffers[n] not in self.pool]
        self.born.update(dict.fromkeys(free, "epilogue"))
        self.looped.update((*free, *self.state_names))

    def forget(self, buffer: TileBuffer, new_value: str) -> None:
        for key in [k for k, t in self.tiles.items() if t.buffer is buffer and k[0] != new_value]:
            del self.tiles[key]

    def kept_tile(self, like: Value, dims: tuple[str, ...], split: str, name: str, rows: int = 0) -> Tile:
        """A buffer that outlives the level; `rows` instead of the tile's own if that is given."""
        shape = tuple(self.b.extent(d, split) for d in dims)
        shape = (rows, *shape[1:]) if rows else shape
        made = self.b.buffer(name, "ub", shape, like.dtype)
        self.kept.add(made.name)
        self.born[made.name] = "prologue"
        return Tile(made, dims, split)

    def scratch(self, like: Tile, name: str) -> str:
        """A buffer of the same shape and dtype that holds nothing from one line to the next operation."""
        return self.scratch_of(like.buffer.shape, like.buffer.dtype, name)

    def scratch_of(self, shape: tuple[int, ...], dtype: str, name: str) -> str:
        """As scratch, with the shape and the dtype given."""
        key = (name, shape, dtype)
        if key not in self.scratches:
            made = self.scratches[key] = self.b.buffer(name, "ub", shape, dtype)
            self.kept.add(made.name)
            self.born[made.name] = "prologue"
        return self.scratches[key].name

    def borrowed(self, value: Value, like: Tile, name: str) -> Tile:
        """A buffer for the time before the loop: one that only the loop uses, or a new one."""
        for buffer in self.b.buffers.values():
            free = self.born.get(buffer.name) == "body" and buffer.name not in self.kept and self.uses.get(buffer.name) != "out"
            if free and buffer.shape == like.buffer.shape and buffer.dtype == value.dtype:
                return Tile(buffer, like.dims, like.split)
        return self.kept_tile(value, like.dims, like.split, name, like.buffer.shape[0])

    def moved(self, source: str, out: TileBuffer) -> list[str]:
        """One buffer's tile in another of the same shape and dtype. Copies move blocks of 32 bytes: a shorter tile is multiplied by 1."""
        elements = math.prod(out.shape)
        if elements * DTYPE_BYTES[out.dtype] % BLOCK == 0:
            return [f"T.copy({source}, {out.name})"]
        if out.dtype in ("float32", "float16", "int32"):
            return [f"T.tile.mul({out.name}, {source}, {'1' if out.dtype == 'int32' else '1.0'})"]
        wide = self.scratch_of(out.shape, "float32" if out.dtype == "bfloat16" else "float16", "wide_ub")
        return [f"T.copy({source}, {wide})", f"T.copy({wide}, {out.name})"]

    def cast(self, source: str, out: TileBuffer) -> list[str]:
        """One buffer's tile in another of the same shape, in its dtype; in several steps where the Vector unit has no conversion."""
        lines, steps = list[str](), chain(self.b.buffers[source].dtype, out.dtype)
        for i, dtype in enumerate(steps):
            target = out.name if dtype == out.dtype and i == len(steps) - 1 else self.scratch_of(out.shape, dtype, f"{dtype}_ub")
            lines.append(f"T.copy({source}, {target})")
            source = target
        return lines

    def zeroed(self, out: TileBuffer) -> list[str]:
        """A tile filled with 0; there is no fill for int8."""
        if out.dtype != "int8":
            return [f"T.tile.fill({out.name}, {'0' if out.dtype == 'int32' else '0.0'})"]
        wide = self.scratch_of(out.shape, "float16", "float16_ub")
        return [f"T.tile.fill({wide}, 0.0)", f"T.copy({wide}, {out.name})"]

    def split(self, out: str) -> str:
        """The dim that two Vector cores share in the operation that makes a value."""
        shares = self.b.structure.split
        return shares.get(out, "") if shares and self.b.kernel.threads == 2 else ""
