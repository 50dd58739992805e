"""Arguments to run a kernel with: values for open sizes, random tensors, and what each buffer is for."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from fusion.check import program as p
from fusion.check.facts import Facts, number
from fusion.check.golden.scalars import Value, whole
from fusion.check.golden.store import Array, Tile, storage
from fusion.check.inspection import Instance
from fusion.errors import FusionError
from fusion.rules import names

Use = Literal["in", "out", "inout", "workspace"]
Sizes = Mapping[str, int]

RUNS: tuple[tuple[int, ...], ...] = ((256, 128), (200, 104), (16, 48))
"""Open sizes are run with multiples of the usual tiles, with tails, and with less than one tile; neighbours get different values."""
SCALAR = 4
MOST_BYTES = 1 << 30


@dataclass(frozen=True)
class Argument:
    """One GM buffer of a run: its shape, its values, and what the kernel does with it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    use: Use
    data: Array | None


def known_sizes(program: p.Program) -> tuple[str, ...]:
    """The sizes and scalars that a kernel leaves open."""
    return tuple(dict.fromkeys((*program.open_sizes(), *(s.name for s in program.scalars()))))


def size_sets(program: p.Program, given: Sizes) -> tuple[dict[str, int], ...]:
    """The open sizes of each run; a kernel without any is run once. Names that the kernel does not have are another kernel's."""
    scalars = {s.name: given.get(s.name, SCALAR) for s in program.scalars()}
    own = {name: size for name, size in given.items() if name in known_sizes(program)}
    free = [name for name in program.open_sizes() if name not in own and name not in scalars]
    runs = RUNS if free else RUNS[:1]
    return tuple({**scalars, **own, **{name: run[i % len(run)] for i, name in enumerate(free)}} for run in runs)


def uses(facts: Facts, instance: Instance) -> dict[str, Use]:
    """What the kernel does with each buffer, from its statements, its name and the decorator's indices."""
    buffers = facts.program.buffers
    params = facts.program.params
    outputs = {params[i % len(params)].name for i in instance.out_idx}
    workspaces = {params[i % len(params)].name for i in instance.workspace_idx}
    read = {name for touch in facts.touches for name in touch.reads}
    written = {name for touch in facts.touches for name in touch.writes}
    added = {touch.writes[0] for touch in facts.touches if touch.op == "ascend_atomic_add" and touch.writes}
    found: dict[str, Use] = {}
    for buffer in buffers:
        name = buffer.name
        if name in added:
            found[name] = "inout"
        elif name not in written:
            found[name] = "in"
        elif name in workspaces or (name in read and (names.is_ordered(name) or crosses(facts, name))):
            found[name] = "workspace"
        else:
            found[name] = "out" if name in outputs or name not in read else "inout"
    return found


def crosses(facts: Facts, name: str) -> bool:
    """Whether both units use the buffer."""
    return len({touch.unit for touch in facts.touches if name in touch.reads or name in touch.writes}) == 2


def arguments(facts: Facts, instance: Instance, sizes: Sizes, seed: int = 0) -> tuple[Argument, ...]:
    """The buffers of one run, filled. Refuses more than 1 GB."""
    found = uses(facts, instance)
    made: list[Argument] = []
    for buffer in facts.program.buffers:
        shape = tuple(_size(size, sizes) for size in buffer.shape or ())
        made.append(Argument(buffer.name, buffer.dtype, shape, found[buffer.name], None))
    total = sum(math.prod(a.shape) * storage(a.dtype).itemsize for a in made)
    if total > MOST_BYTES:
        raise FusionError(
            f"its arguments take {total >> 20} MB", where=facts.program.name, remedy="give smaller sizes with --args or --shape"
        )
    added = {touch.writes[0] for touch in facts.touches if touch.op == "ascend_atomic_add" and touch.writes}
    return tuple(_filled(argument, seed, argument.name in added) for argument in made)


def _size(expr: p.Expr, sizes: Sizes) -> int:
    fixed = number(expr)
    bound: dict[str, Value] = dict(sizes)
    return fixed if fixed is not None else whole(expr, bound, _no_buffer)


def _no_buffer(name: str) -> Tile:
    raise FusionError(f"a size that depends on the contents of {name}")


def _filled(argument: Argument, seed: int, zero: bool) -> Argument:
    if argument.use in ("out", "workspace"):
        return argument
    kind = storage(argument.dtype)
    if zero:
        return Argument(argument.name, argument.dtype, argument.shape, argument.use, np.zeros(argument.shape, kind))
    draw = np.random.default_rng([seed, zlib.crc32(argument.name.encode())])
    if kind.kind == "f":
        values = draw.uniform(-0.5, 0.5, argument.shape)
    else:
        values = draw.integers(0, 2 if argument.dtype == "bool" else 8, argument.shape)
    tile = Tile.empty(argument.shape, argument.dtype)
    tile.put(slice(0, None), values.astype(np.float64))
    return Argument(argument.name, argument.dtype, argument.shape, argument.use, tile.box)


def tile_of(argument: Argument) -> Tile:
    if argument.data is None:
        return Tile.empty(argument.shape, argument.dtype)
    return Tile(argument.shape, argument.dtype, argument.data.reshape(-1).copy())
