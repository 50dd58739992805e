"""The state of one kernel's emission: parameters, on-chip buffers, and the lines of its three levels."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from functools import cached_property

from fusion.emit.expr import tile_limits
from fusion.emit.formula import base_name, formula
from fusion.emit.gm import Band, GmTensor, band_bounds, flat_index, gathered, gm_tensor, sliced
from fusion.emit.names import reserved
from fusion.emit.program import GmParam, Line, ParamRole, Scope, TileBuffer
from fusion.graph import Affine, Op, Stage, Value
from fusion.graph.slices import Rows, Slice
from fusion.plan.structure import Structure
from fusion.plan.tiling import FRACTAL, Tiling
from fusion.plan.types import Handoff, Kernel, Level

LEVELS: tuple[Level, ...] = ("prologue", "body", "epilogue")


@dataclass(frozen=True)
class Tile:
    """A buffer holding a value (or part of one): the dims of its axes, and the dim that two Vector cores share."""

    buffer: TileBuffer
    dims: tuple[str, ...]
    split: str = ""

    @property
    def name(self) -> str:
        return self.buffer.name


@dataclass
class KernelBuilder:
    """Collects what cube.py and vector.py write for one kernel."""

    structure: Structure
    kernel: Kernel
    cores: int
    params: dict[str, GmParam] = field(default_factory=dict[str, GmParam])
    buffers: dict[str, TileBuffer] = field(default_factory=dict[str, TileBuffer])
    lines: dict[Level, list[Line]] = field(default_factory=lambda: {level: list[Line]() for level in LEVELS})
    relays: dict[str, str] = field(default_factory=dict[str, str])  # the buffer that a relay starts from, or ends in, by value
    explained: set[tuple[str, Level]] = field(default_factory=set[tuple[str, Level]])  # named values whose formula stands there
    closing: list[Line] = field(default_factory=list[Line])  # the last lines of an iteration
    tensors: dict[tuple[str, Slice | Rows | None], GmTensor] = field(default_factory=dict[tuple[str, Slice | Rows | None], GmTensor])
    labels: dict[tuple[str, Slice | Rows | None], str] = field(default_factory=dict[tuple[str, Slice | Rows | None], str])

    # ---- lines

    def add(self, level: Level, stage: str, *texts: str) -> None:
        self.lines[level].extend(Line(t, stage) for t in texts)

    def explain(self, level: Level, stage: str, op: Op) -> None:
        """The formula of the named value to which an operation leads, once a level."""
        name = base_name(op.out)
        if (name, level) not in self.explained:
            self.explained.add((name, level))
            _, whole = self.structure.made.get(name, (None, op))
            self.add(level, stage, f"# {formula(whole, self.operations)}")

    @cached_property
    def operations(self) -> dict[str, Op]:
        return {out: op for out, (_, op) in self.structure.made.items()}

    # ---- indices

    @property
    def tiling(self) -> Tiling:
        return self.structure.tiling

    def index(self, dim: str) -> str:
        """The tile index of a dim: a variable where the kernel walks it, else 0."""
        return f"{dim}_i" if dim in (*self.kernel.grid, *self.kernel.loops) else "0"

    def start(self, dim: str) -> str:
        """First index of the current tile of a dim."""
        at = self.index(dim)
        if at == "0":
            return "0"
        return f"{at} * block_{dim}" if self.tiling.is_matrix(dim) else at

    def extent(self, dim: str, split: str) -> int:
        return self.tiling.tile(dim) // (2 if dim == split else 1)

    def extent_text(self, dim: str, split: str) -> str:
        return f"block_{dim} // 2" if dim == split else f"block_{dim}"

    def rows_text(self, dim: str, split: str) -> str:
        """The start of a tile's part along a dim, for one of two Vector cores where they share it."""
        start = self.start(dim)
        if dim != split:
            return start
        half = f"vid * (block_{dim} // 2)"
        return half if start == "0" else f"{start} + {half}"

    # ---- on-chip buffers

    def buffer(self, name: str, scope: Scope, shape: tuple[int, ...], dtype: str) -> TileBuffer:
        """A new buffer; the name gets a number if it is taken."""
        name = re.sub(r"__\d+(?=_|\Z)", "", name)
        unique, number = name, 2
        while unique in self.buffers or unique in self.params:
            unique, number = f"{name}_{number}", number + 1
        made = TileBuffer(unique, scope, shape, dtype)
        self.buffers[unique] = made
        return made

    def tile(self, value: Value, scope: Scope, split: str = "", name: str = "") -> Tile:
        """A new buffer for a value's tile."""
        dims = self.tiling.shape(value.name)
        shape = tuple(self.extent(d, split) for d in dims)
        return Tile(self.buffer(name or f"{value.name}_{scope}", scope, shape, value.dtype), dims, split)

    # ---- GM

    def param(self, value: Value, role: ParamRole, name: str = "", part: Slice | Rows | None = None) -> GmTensor:
        """The GM tensor of a value, as a parameter of the kernel; one more for a part of it, which has other tiles."""
        key = (value.name, part)
        if key not in self.tensors:
            tiling = self.tiling if part is None else sliced(self.tiling, part) if isinstance(part, Slice) else gathered(self.tiling, part)
            tensor = self.tensors[key] = gm_tensor(tiling, value, self.lane_dim(value.name))
            cut = part.part if isinstance(part, Rows) else part
            label = name or (f"{value.name}_{cut.into}" if cut else value.name)
            while label in self.params:
                label = f"{label}_part"
            label = f"{label}_gm" if reserved(label) and not name else label
            self.labels[key] = label
            self.params[label] = GmParam(label, tensor.shape, value.dtype, role, value.name, tensor.order, bool(tensor.lanes))
        return self.tensors[key]

    def lane_dim(self, value: str) -> str:
        """The tiled dim that an atomic Vector sum leaves in lanes for the host."""
        return lane_dim(self.structure, value)

    def region(self, value: Value, split: str = "", part: Slice | None = None, lanes: str = "") -> str:
        """The text of the GM region that holds the current tile of a value; `lanes` is the part of a last axis of copies."""
        tensor = self.tensors[value.name, part]
        name = self.labels[value.name, part]
        if tensor.packed:
            return f"{name}[{', '.join(self.packed_indices(value, tensor.packed, split))}]"
        parts = [self.axis_text(axis, split, part) for axis in tensor.axes if axis]
        if tensor.lanes:
            parts.append(lanes or self.lane_text(value.name, split))
        return f"{name}[{', '.join(parts)}]"

    def row_region(self, rows: Rows, at: str, split: str) -> str:
        """The text of the GM region of one row (or what there is of further dims) at the index `at` of the gathered dim."""
        tensor, name = self.tensors[rows.source, rows], self.labels[rows.source, rows]
        return f"{name}[{', '.join(self.axis_text(axis, split, rows.part, {rows.dim: at}) for axis in tensor.axes if axis)}]"

    def place(self, value: Value, split: str = "") -> str:
        """As region, but only its first element: the compiler reads the slices of an atomic sum in a wrong order."""
        name, _, parts = self.region(value, split).partition("[")
        return f"{name}[{', '.join(p.split(':')[0].strip() for p in parts.removesuffix(']').split(', '))}]"

    def axis_text(self, axis: tuple[str, ...], split: str, part: Slice | None = None, given: dict[str, str] | None = None) -> str:
        """The range of an axis; `given` are the indices of dims that are not at the tile's."""
        fixed = given or {}
        names = {d: part.into if part and d == part.dim else d for d in axis}
        starts = {d: fixed.get(d) or self.rows_text(names[d], split) for d in axis}
        if part and part.start and part.dim in starts:
            shift, at = str(part.start), starts[part.dim]
            starts[part.dim] = shift if at == "0" else f"{at} + {shift}"
        start = flat_index(self.tiling, axis, starts)
        tiled = [names[d] for d in axis if d not in fixed and self.tiling.is_matrix(names[d])]
        if not tiled:
            return start
        extent = self.extent_text(tiled[-1], split)
        return f"0:{extent}" if start == "0" else f"{start} : {start} + {extent}"

    def lane_text(self, value: str, split: str) -> str:
        dim = self.lane_dim(value)
        if not dim:
            return f"0:{self.lane_rows()}"
        extent = self.extent_text(dim, split)
        return f"vid * ({extent}) : vid * ({extent}) + {extent}" if dim == split else f"0:{extent}"

    def lane_rows(self) -> int:
        """How many lanes a value without tiled dims takes in UB: as many as the longest tile that it can meet."""
        return max([self.tiling.tile(d) for out in self.structure.made for d in self.tiling.shape(out)] or [16])

    def packed_indices(self, value: Value, packed: Band, split: str) -> list[str]:
        units = [self.start(d) for d in value.dims if d not in (packed.row, packed.col)]
        bounds = band_bounds(self.tiling, value.name, packed.row, packed.col)
        exact = True
        low, _ = tile_limits(self.tiling, bounds, packed.col, {packed.row: self.index(packed.row)}, exact)
        at = self.index(packed.col) if low == "0" else f"{self.index(packed.col)} - {low}"
        tiles = [self.within(d, split) for d in (packed.row, packed.col)]
        return [*units, self.index(packed.row), at, *tiles]

    def within(self, dim: str, split: str) -> str:
        """A tile's own range along a dim: all of it, or the half of one Vector core."""
        if dim != split:
            return f"0:block_{dim}"
        half = f"block_{dim} // 2"
        return f"vid * ({half}) : vid * ({half}) + {half}"

    # ---- workspaces

    def workspace(self, handoff: Handoff, value: Value) -> str:
        """Declares the workspace of a handoff (once) and returns its name."""
        tiles = tuple(self.tiling.tile(d) for d in self.tiling.shape(value.name))
        slots = () if handoff.slots else (math.prod(self.tiling.trips(d) for d in self.kernel.loops),)
        shape = (self.blocks, *slots, *tiles)
        self.params.setdefault(handoff.name, GmParam(handoff.name, shape, value.dtype, "workspace"))
        return handoff.name

    def through_global(self, handoff: Handoff) -> bool:
        """Whether a handoff uses the GM tensor that later kernels read, rather than a workspace of its own."""
        return handoff.slots == 0 and handoff.value in self.structure.stored

    def handoff_region(self, handoff: Handoff, value: Value, split: str = "") -> str:
        """The GM region through which a handoff goes."""
        if self.through_global(handoff):
            self.param(value, "output", handoff.name)
            return self.region(value, split)
        return self.workspace_region(handoff, value, split)

    def workspace_region(self, handoff: Handoff, value: Value, split: str = "") -> str:
        slot = [] if handoff.slots else [self.step_text()]
        parts = ["cid", *slot, *(self.within(d, split) for d in self.tiling.shape(value.name))]
        return f"{self.workspace(handoff, value)}[{', '.join(parts)}]"

    def step_text(self) -> str:
        """A number for the current iteration of all loops, from 0."""
        text = "0"
        for loop in self.kernel.loops:
            trips = self.tiling.trips(loop)
            text = f"{loop}_t" if text == "0" else f"({text}) * {trips} + {loop}_t"
        return text

    def first_step(self) -> str:
        """True in the first iteration of all loops."""
        return f"{' + '.join(f'{d}_t' for d in self.kernel.loops)} == 0" if self.kernel.loops else "True"

    @property
    def tasks(self) -> int:
        return math.prod(self.tiling.trips(d) for d in self.kernel.grid)

    @property
    def blocks(self) -> int:
        """How many blocks are launched: one a task, or at most one a core for a persistent kernel."""
        return min(self.tasks, self.cores) if self.kernel.persistent else self.tasks

    def free_name(self, handoff: Handoff) -> str:
        """The workspace through which the reader of a handoff tells that it is done."""
        name = f"{handoff.name}_free"
        dtype = "float16" if handoff.direction == "cube->vector" else "float32"
        self.params.setdefault(name, GmParam(name, (self.blocks, 2 * FRACTAL, FRACTAL), dtype, "workspace"))
        return name

    # ---- facts

    def handoff(self, value: str) -> Handoff | None:
        return next((h for h in self.kernel.handoffs if h.value == value), None)

    def affine_starts(self, condition: Affine, split: str) -> list[tuple[str, int]]:
        """Tile starts in a condition, as (text, coefficient)."""
        found: list[tuple[str, int]] = []
        for dim, coefficient in condition.terms:
            start = self.start(dim)
            if start != "0":
                found.append((start, coefficient))
            if dim == split:
                found.append((f"vid * (block_{dim} // 2)", coefficient))
        return found

    def stage_of(self, op: Op) -> Stage:
        return self.structure.made[op.out][0]


def lane_dim(structure: Structure, value: str) -> str:
    """The tiled dim that a Vector sum to one number leaves in lanes for the host to add up; "" for every other value."""
    return structure.lane_dim(value)
