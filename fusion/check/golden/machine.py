"""Executes a program: all Vector cores of a block in lockstep, or unit by unit where the author split them with T.Scope and flags."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

import numpy as np

from fusion.check import program as p
from fusion.check.facts import COPIES, GEMMS, SYNCS, Facts, Memory
from fusion.check.golden import copies, lanes, ops, sorting
from fusion.check.golden.operands import Operands, Span
from fusion.check.golden.scalars import Find, Later, NotInterpreted, Value, flat_index, value, whole
from fusion.check.golden.store import Array, Tile, array
from fusion.check.program import Unit

__all__ = ["Golden", "NotInterpreted", "interpret"]

Names: TypeAlias = "dict[str, Value | Later]"
Stream: TypeAlias = "Iterator[str]"
OPS = {**ops.OPS, **lanes.OPS, **sorting.OPS}
FLAG, ALL = "flag", "all"
"""What a stream waits for when it yields: a flag of its block, or all blocks."""
IGNORED = (*(op for op in SYNCS if op != "ascend_sync_all"), "ascend_printf", "ascend_dump_tensor")
MOST_STEPS = 400_000
"""Statements that are executed at most; a kernel of more is not interpreted."""


@dataclass(frozen=True)
class Golden:
    """The GM buffers after the kernel."""

    outputs: Mapping[str, Array]
    statements: int


@dataclass
class Lane:
    """One Vector core of a block (or the Cube): its variables and its own memories."""

    names: Names
    tiles: dict[str, Tile] = field(default_factory=lambda: dict[str, Tile]())

    def inner(self, name: str, content: Value | Later) -> Lane:
        return Lane({**self.names, name: content}, self.tiles)


class LoopBreak(Exception):
    """Leaves the innermost loop."""


class Flags:
    """Cross-core flags of one block: what each stream may still wait for."""

    def __init__(self) -> None:
        self.counts: dict[tuple[str, int], int] = {}

    def set(self, stream: str, flag: int) -> None:
        """The Cube's set is for each Vector core; a Vector core's is one half of the Cube's."""
        for other in ("vector0", "vector1") if stream == "cube" else (f"cube from {stream}",):
            self.counts[other, flag] = self.counts.get((other, flag), 0) + 1

    def take(self, stream: str, flag: int) -> bool:
        keys = [("cube from vector0", flag), ("cube from vector1", flag)] if stream == "cube" else [(stream, flag)]
        if any(self.counts.get(key, 0) < 1 for key in keys):
            return False
        for key in keys:
            self.counts[key] -= 1
        return True


class Machine:
    """One block. `gm` is shared with the other blocks."""

    def __init__(self, facts: Facts, gm: dict[str, Tile], names: Names) -> None:
        self.facts, self.gm, self.names = facts, gm, names
        self.shared: dict[str, Tile] = {}
        self.flags = Flags()
        self.steps = 0

    def streams(self) -> Stream:
        """Runs the block to its end; yields where all blocks must come together."""
        program = self.facts.program
        cores = range(2 if program.vid else 1)
        lanes = [Lane({**self.names, **({program.vid: core} if program.vid else {})}) for core in cores]
        if not self._split(program.body):
            yield from self._run(program.body, lanes, None, "")
            return
        parts = [self._run(program.body, [lanes[0]], "cube", "cube")]
        parts += [self._run(program.body, [lane], "vector", f"vector{core}") for core, lane in enumerate(lanes)]
        yield from self._interleave(parts)

    def _split(self, stmt: p.Stmt) -> bool:
        return isinstance(stmt, p.Scope) or any(self._split(child) for child in p.children(stmt))

    def _interleave(self, parts: list[Stream]) -> Stream:
        """Each part runs until it must wait; a round in which nothing happens at all is a deadlock."""
        while parts:
            before = self.steps
            waits = [(part, next(part, "")) for part in parts]
            parts = [part for part, reason in waits if reason]
            together = [part for part, reason in waits if reason == ALL]
            if parts and len(together) == len(parts):
                yield ALL
            elif parts and self.steps == before:
                raise NotInterpreted("flags that are never set")

    # ---- statements

    def _run(self, stmt: p.Stmt, lanes: Sequence[Lane], unit: Unit | None, stream: str) -> Stream:
        match stmt:
            case p.Seq(body=body):
                for child in body:
                    yield from self._run(child, lanes, unit, stream)
            case p.Block(allocs=allocs, body=body):
                self._allocate(allocs, lanes)
                yield from self._run(body, lanes, unit, stream)
            case p.Let(name=name, value=expr, body=body):
                inner = [lane.inner(name, self._let(expr, lane)) for lane in lanes]
                yield from self._run(body, inner, unit, stream)
            case p.Scope(unit=own, body=body):
                if unit in (None, own):
                    yield from self._run(body, lanes, unit, stream)
            case p.If():
                yield from self._if(stmt, lanes, unit, stream)
            case p.For():
                yield from self._for(stmt, lanes, unit, stream)
            case p.While(condition=condition, body=body):
                while active := [lane for lane in lanes if self._value(condition, lane)]:
                    yield from self._run(body, active, unit, stream)
                    self._count()
            case p.Store():
                self._count()
                for lane in lanes if unit != "cube" or self._memory(stmt.buffer) == "var" else ():
                    self._store(stmt, lane)
            case p.Eval(line=line, call=call):
                yield from self._eval(line, call, lanes, unit, stream)

    def _count(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise NotInterpreted(f"more than {MOST_STEPS} statements")

    def _allocate(self, allocs: Sequence[p.Alloc], lanes: Sequence[Lane]) -> None:
        for alloc in allocs:
            for lane in lanes:
                shape = tuple(whole(size, lane.names, self._finder(lane)) for size in alloc.shape)
                home = self.shared if self._memory(alloc.name) in ("L1", "L0A", "L0B", "L0C") else lane.tiles
                home[alloc.name] = home.get(alloc.name) or Tile.empty(shape, alloc.dtype)
                if self._memory(alloc.name) == "var":
                    home[alloc.name].data[:] = self._value(alloc.init, lane) if alloc.init is not None else 0

    def _if(self, stmt: p.If, lanes: Sequence[Lane], unit: Unit | None, stream: str) -> Stream:
        yes = [lane for lane in lanes if self._value(stmt.condition, lane)]
        no = [lane for lane in lanes if lane not in yes]
        if yes:
            yield from self._run(stmt.then, yes, unit, stream)
        if no:
            yield from self._run(stmt.otherwise, no, unit, stream)

    def _for(self, stmt: p.For, lanes: Sequence[Lane], unit: Unit | None, stream: str) -> Stream:
        if stmt.kind == "parallel" and _only_stores(stmt):
            self._count()
            for lane in lanes if unit != "cube" else ():
                self._parallel(stmt, lane)
            return
        starts = [whole(stmt.start, lane.names, self._finder(lane)) for lane in lanes]
        trips = [whole(stmt.extent, lane.names, self._finder(lane)) for lane in lanes]
        for i in range(max(trips, default=0)):
            active = [lane.inner(stmt.var, start + i) for lane, start, n in zip(lanes, starts, trips, strict=True) if i < n]
            try:
                yield from self._run(stmt.body, active, unit, stream)
            except LoopBreak:
                return

    def _parallel(self, stmt: p.Stmt, lane: Lane) -> None:
        """A T.Parallel nest: each of its stores for all iterations at once."""
        loops: list[p.For] = []
        while isinstance(stmt, p.For):
            loops.append(stmt)
            stmt = stmt.body
        extents = [whole(loop.extent, lane.names, self._finder(lane)) for loop in loops]
        grids = [array(grid) for grid in np.meshgrid(*[np.arange(n) for n in extents], indexing="ij")]
        for loop, grid in zip(loops, grids, strict=True):
            lane = lane.inner(loop.var, grid + whole(loop.start, lane.names, self._finder(lane)))
        self._stores(stmt, lane, array(np.ones(tuple(extents), bool)))

    def _stores(self, stmt: p.Stmt, lane: Lane, mask: Array) -> None:
        match stmt:
            case p.If(condition=condition, then=then, otherwise=otherwise):
                chosen = np.asarray(self._value(condition, lane), bool)
                self._stores(then, lane, array(np.logical_and(mask, chosen)))
                self._stores(otherwise, lane, array(np.logical_and(mask, np.logical_not(chosen))))
            case p.Store():
                self._store(stmt, lane, mask)
            case p.Let(name=name, value=expr, body=body):
                self._stores(body, lane.inner(name, self._value(expr, lane)), mask)
            case _:
                for child in p.children(stmt):
                    self._stores(child, lane, mask)

    def _store(self, stmt: p.Store, lane: Lane, mask: Array | None = None) -> None:
        tile = self._find(stmt.buffer, lane)
        at = flat_index(tile, stmt.indices, lane.names, self._finder(lane))
        content = self._value(stmt.value, lane)
        if mask is None:
            tile.put(slice(int(cast("int", at)), int(cast("int", at)) + 1), array(content))
            return
        chosen = mask.astype(bool)
        where = np.broadcast_to(np.asarray(at), mask.shape)[chosen].astype(np.intp)
        tile.put(where, array(np.broadcast_to(np.asarray(content), mask.shape)[chosen]))

    # ---- calls

    def _eval(self, line: int, call: p.Call, lanes: Sequence[Lane], unit: Unit | None, stream: str) -> Stream:
        self._count()
        if call.op == "loop_break":
            raise LoopBreak
        if call.op == "ascend_sync_all":
            yield ALL
        elif unit is not None and call.op == "ascend_set_cross_flag":
            self.flags.set(stream, whole(call.args[1], lanes[0].names, self._finder(lanes[0])))
        elif unit is not None and call.op == "ascend_wait_cross_flag":
            flag = whole(call.args[0], lanes[0].names, self._finder(lanes[0]))
            while not self.flags.take(stream, flag):
                yield FLAG
            self._count()
        elif call.op not in IGNORED:
            self._operate(line, call, lanes, unit)

    def _operate(self, line: int, call: p.Call, lanes: Sequence[Lane], unit: Unit | None) -> None:
        own = self._unit(call)
        if unit not in (None, own):
            return
        for lane in lanes[:1] if own == "cube" else lanes:
            try:
                self._execute(call, lane)
            except NotInterpreted as problem:
                raise NotInterpreted(f"{problem} (line {line})") from None
            except (ValueError, IndexError, TypeError) as problem:
                raise NotInterpreted(f"{call.op}: {problem} (line {line})") from None

    def _unit(self, call: p.Call) -> Unit:
        """Where it runs; data that goes from one unit to the other goes as many times as there are Vector cores."""
        memories = [self._memory(arg.buffer) for arg in call.args if isinstance(arg, p.Region | p.Pointer)]
        return "cube" if call.op in GEMMS or ("UB" not in memories and "GM" in memories) or not {"UB", "var"} & set(memories) else "vector"

    def _execute(self, call: p.Call, lane: Lane) -> None:
        if call.op in COPIES or call.op == "ascend_atomic_add":
            self._move(call, lane)
            return
        if call.op not in OPS:
            raise NotInterpreted(call.op)
        OPS[call.op](Operands(call.op, tuple(self._operand(argument, lane) for argument in call.args)))

    def _move(self, call: p.Call, lane: Lane) -> None:
        first, second = (self._box(cast("p.Region", argument), lane) for argument in call.args[:2])
        if call.op == "ascend_atomic_add":
            copies.atomic_add(second, first)
            return
        relu, transpose, pad = (self._value(argument, lane) for argument in call.args[2:5]) if len(call.args) >= 5 else (0, 0, 0)
        copies.copy(first, second, float(cast("float", pad)), bool(relu), bool(transpose))

    def _box(self, region: p.Region, lane: Lane) -> copies.Box:
        find = self._finder(lane)
        starts = tuple(whole(index, lane.names, find) for index in region.starts)
        extents = tuple(whole(size, lane.names, find) for size in region.extents)
        return copies.Box(self._find(region.buffer, lane), starts, extents, region.buffer in self.gm)

    def _operand(self, argument: p.Expr, lane: Lane) -> Span | Value | str:
        match argument:
            case p.Text(value=text):
                return text
            case p.Pointer(buffer=name, offset=offset, extent=extent):
                find = self._finder(lane)
                return Span(self._find(name, lane), whole(offset, lane.names, find), whole(extent, lane.names, find))
            case _:
                return self._value(argument, lane)

    # ---- values

    def _memory(self, name: str) -> Memory:
        return self.facts.memory(name)

    def _let(self, expr: p.Expr, lane: Lane) -> Value | Later:
        free = [name for name in p.names_in(expr) if name not in lane.names]
        return Later(expr) if free else self._value(expr, lane)

    def _value(self, expr: p.Expr, lane: Lane) -> Value:
        return value(expr, lane.names, self._finder(lane))

    def _finder(self, lane: Lane) -> Find:
        return lambda name: self._find(name, lane)

    def _find(self, name: str, lane: Lane) -> Tile:
        for home in (lane.tiles, self.shared, self.gm):
            if name in home:
                return home[name]
        raise NotInterpreted(f"a buffer {name} that is nowhere made")


def _only_stores(stmt: p.Stmt) -> bool:
    if isinstance(stmt, p.Eval | p.While) or (isinstance(stmt, p.For) and stmt.kind != "parallel"):
        return False
    return all(_only_stores(child) for child in p.children(stmt))


def interpret(facts: Facts, buffers: Mapping[str, Tile], sizes: Mapping[str, Value]) -> Golden:
    """Run every block; `buffers` are the GM arguments (not changed), `sizes` the open sizes and scalars. Raises NotInterpreted."""
    gm = {name: Tile(tile.shape, tile.dtype, tile.data.copy()) for name, tile in buffers.items()}
    program = facts.program
    count = whole(program.blocks, sizes, lambda name: gm[name])
    machines = [Machine(facts, gm, {**sizes, program.block_var: block}) for block in range(count)]
    waiting = [machine.streams() for machine in machines]
    with np.errstate(all="ignore"):
        while waiting:
            waiting = [run for run in waiting if next(run, "")]
    return Golden({name: tile.box for name, tile in gm.items()}, sum(machine.steps for machine in machines))
