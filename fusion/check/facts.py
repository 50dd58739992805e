"""What the static rules look at: every statement with its unit, loops and conditions, every on-chip buffer, and what crosses the units."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from fusion.check import program as p
from fusion.check.program import Program, Unit

Memory = Literal["GM", "L1", "L0A", "L0B", "L0C", "UB", "var"]

ITEMSIZE = {
    "float64": 8,
    "int64": 8,
    "uint64": 8,
    "float32": 4,
    "int32": 4,
    "uint32": 4,
    "float16": 2,
    "bfloat16": 2,
    "int16": 2,
    "uint16": 2,
}
FIXED: dict[str, Memory] = {
    "shared.l1": "L1",
    "wmma.matrix_a": "L0A",
    "wmma.matrix_b": "L0B",
    "wmma.accumulator": "L0C",
    "shared": "UB",
    "local.var": "var",
}
CUBE: tuple[Memory, ...] = ("L1", "L0A", "L0B", "L0C")
GEMMS = ("ascend_gemm_v0", "ascend_mma", "ascend_gemm_v1")
COPIES = ("ascend_copy", "copy")
ATOMICS = ("ascend_atomic_add",)
MANUAL_FLAGS = ("ascend_set_cross_flag", "ascend_wait_cross_flag")
SYNCS = (*MANUAL_FLAGS, "ascend_set_flag", "ascend_wait_flag", "ascend_pipe_barrier", "ascend_sync_all")


def itemsize(dtype: str) -> int:
    return ITEMSIZE.get(dtype, 1)


@dataclass(frozen=True)
class Local:
    """An on-chip buffer; `bytes` is 0 if its size is not known."""

    name: str
    memory: Memory
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    line: int


@dataclass(frozen=True)
class Loop:
    """A loop around a statement; `trips` None: not a number."""

    key: str
    var: str
    start: int | None
    trips: int | None
    kind: str
    stages: int


@dataclass(frozen=True)
class Touch:
    """One statement: what it reads and writes, in program order."""

    order: int
    line: int
    op: str
    unit: Unit
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    loops: tuple[Loop, ...]
    conditions: tuple[str, ...]
    indices: Mapping[str, tuple[p.Expr, ...]] = field(default_factory=lambda: dict[str, tuple[p.Expr, ...]]())
    call: p.Call | None = None
    store: p.Store | None = None

    @property
    def serial(self) -> tuple[Loop, ...]:
        return tuple(loop for loop in self.loops if loop.kind in ("serial", "unrolled"))


@dataclass(frozen=True)
class Relay:
    """A copy between L0C or UB and the other unit, which the compiler leads through a workspace of its own."""

    source: str
    target: str
    direction: Literal["cube->vector", "vector->cube"]
    copy: Touch
    consumer: Touch | None


@dataclass(frozen=True)
class Facts:
    program: Program
    locals: Mapping[str, Local]
    touches: tuple[Touch, ...]
    relays: tuple[Relay, ...]

    def memory(self, name: str) -> Memory:
        return self.locals[name].memory if name in self.locals else "GM"

    def units(self) -> frozenset[Unit]:
        return frozenset(t.unit for t in self.touches if t.op not in SYNCS)

    def gm_writes(self, name: str, unit: Unit) -> tuple[Touch, ...]:
        return tuple(t for t in self.touches if name in t.writes and t.unit == unit)

    def gm_reads(self, name: str, unit: Unit) -> tuple[Touch, ...]:
        return tuple(t for t in self.touches if name in t.reads and t.unit == unit and t.op in (*COPIES,))

    def manual(self) -> tuple[Touch, ...]:
        return tuple(t for t in self.touches if t.op in MANUAL_FLAGS)


def number(expr: p.Expr) -> int | None:
    """The value of an expression without variables."""
    match expr:
        case p.Const(value=value):
            return int(value)
        case p.Cast(value=inner):
            return number(inner)
        case p.Binary(op=op, left=a, right=b):
            x, y = number(a), number(b)
            return None if x is None or y is None else _arithmetic(op, x, y)
        case _:
            return None


def _arithmetic(op: str, x: int, y: int) -> int | None:
    match op:
        case "+":
            return x + y
        case "-":
            return x - y
        case "*":
            return x * y
        case "//" | "/":
            return x // y if y else None
        case "mod" | "%":
            return x % y if y else None
        case "min":
            return min(x, y)
        case "max":
            return max(x, y)
        case _:
            return None


def called_function(touch: Touch) -> str:
    """The function of the template library that a statement calls by its name; "" for all that the compiler knows itself."""
    first = touch.call.args[0] if touch.call is not None and touch.op == "call_extern" and touch.call.args else None
    return first.value.split("<")[0].split("::")[-1] if isinstance(first, p.Text) else ""


def collect(program: Program) -> Facts:
    """The facts of a program."""
    memories = _memories(program)
    found = {alloc.name: _local(alloc, memories[alloc.name]) for alloc in program.allocs}
    touches = tuple(_Walk(program, found).run())
    return Facts(program, found, touches, tuple(_relays(found, touches)))


def _local(alloc: p.Alloc, memory: Memory) -> Local:
    shape = tuple(number(size) or 0 for size in alloc.shape)
    return Local(alloc.name, memory, shape, alloc.dtype, math.prod(shape) * itemsize(alloc.dtype), alloc.line)


def _memories(program: Program) -> dict[str, Memory]:
    """Where each buffer lies: as it says, or by its use: gemm operands in L1, gemm results in L0C, all else in UB."""
    operands, results = set[str](), set[str]()
    for call in _calls(program.body):
        names = [arg.buffer for arg in call.args if isinstance(arg, p.Pointer | p.Region)]
        if call.op in GEMMS and len(names) >= 3:
            operands |= set(names[:2])
            results.add(names[2])
    return {alloc.name: _memory(alloc, operands, results) for alloc in program.allocs}


def _memory(alloc: p.Alloc, operands: set[str], results: set[str]) -> Memory:
    if alloc.scope in FIXED:
        return FIXED[alloc.scope]
    return "L0C" if alloc.name in results else "L1" if alloc.name in operands else "UB"


def _calls(stmt: p.Stmt) -> Iterator[p.Call]:
    if isinstance(stmt, p.Eval):
        yield stmt.call
    for child in p.children(stmt):
        yield from _calls(child)


class _Walk:
    """Goes through a program in order."""

    def __init__(self, program: Program, found: Mapping[str, Local]) -> None:
        self.program, self.locals = program, found
        self.order = self.loop_count = 0

    def run(self) -> Iterator[Touch]:
        yield from self._stmt(self.program.body, (), (), None)

    def _stmt(self, stmt: p.Stmt, loops: tuple[Loop, ...], conditions: tuple[str, ...], unit: Unit | None) -> Iterator[Touch]:
        match stmt:
            case p.Eval(line=line, call=call):
                self.order += 1
                yield self._eval(line, call, loops, conditions, unit)
            case p.Store():
                self.order += 1
                yield self._store(stmt, loops, conditions, unit)
            case p.For():
                yield from self._stmt(stmt.body, (*loops, self._loop(stmt)), conditions, unit)
            case p.While(body=body):
                self.loop_count += 1
                yield from self._stmt(body, (*loops, Loop(f"while{self.loop_count}", "", None, None, "serial", 0)), conditions, unit)
            case p.If(condition=condition, then=then, otherwise=otherwise):
                text = p.show(condition)
                yield from self._stmt(then, loops, (*conditions, text), unit)
                yield from self._stmt(otherwise, loops, (*conditions, f"not ({text})"), unit)
            case p.Scope(unit=own, body=body):
                yield from self._stmt(body, loops, conditions, own)
            case _:
                for child in p.children(stmt):
                    yield from self._stmt(child, loops, conditions, unit)

    def _loop(self, stmt: p.For) -> Loop:
        self.loop_count += 1
        return Loop(f"{stmt.var}#{self.loop_count}", stmt.var, number(stmt.start), number(stmt.extent), stmt.kind, stmt.stages)

    def _memory(self, name: str) -> Memory:
        return self.locals[name].memory if name in self.locals else "GM"

    def _eval(self, line: int, call: p.Call, loops: tuple[Loop, ...], conditions: tuple[str, ...], unit: Unit | None) -> Touch:
        reads, writes = _reads_and_writes(call)
        indices = {arg.buffer: arg.starts for arg in call.args if isinstance(arg, p.Region)}
        own = unit or self._unit(call.op, reads, writes)
        return Touch(self.order, line, call.op, own, reads, writes, loops, conditions, indices, call)

    def _store(self, stmt: p.Store, loops: tuple[Loop, ...], conditions: tuple[str, ...], unit: Unit | None) -> Touch:
        reads = tuple(part.buffer for part in p.walk(stmt.value) if isinstance(part, p.Load))
        return Touch(
            self.order,
            stmt.line,
            "store",
            unit or "vector",
            reads,
            (stmt.buffer,),
            loops,
            conditions,
            {stmt.buffer: stmt.indices},
            store=stmt,
        )

    def _unit(self, op: str, reads: tuple[str, ...], writes: tuple[str, ...]) -> Unit:
        """By where the data comes from: a copy from UB to L1 counts as the Vector's, one from L0C to UB as the Cube's."""
        if op in GEMMS:
            return "cube"
        sources = [self._memory(name) for name in reads]
        if "UB" in sources:
            return "vector"
        return "cube" if any(m in CUBE for m in (*sources, *(self._memory(name) for name in writes))) else "vector"


def _reads_and_writes(call: p.Call) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Copies name the source first, gemms the result last, everything else the result first."""
    names = [arg.buffer for arg in call.args if isinstance(arg, p.Pointer | p.Region)]
    loads = [part.buffer for arg in call.args for part in p.walk(arg) if isinstance(part, p.Load)]
    if call.op in SYNCS or not names:
        return tuple(loads), ()
    if call.op in COPIES:
        return (names[0], *loads), (names[1],) if len(names) > 1 else ()
    if call.op in GEMMS:
        return (*names[:2], *loads), (names[2],) if len(names) > 2 else ()
    return (*names[1:], *loads), (names[0],)


def _relays(found: Mapping[str, Local], touches: tuple[Touch, ...]) -> Iterator[Relay]:
    for touch in touches:
        if touch.op not in COPIES or not touch.writes:
            continue
        source, target = touch.reads[0], touch.writes[0]
        ends = [found[name].memory if name in found else "GM" for name in (source, target)]
        if ends in (["L0C", "UB"], ["UB", "L1"]):
            consumer = next((t for t in touches if t.order > touch.order and target in t.reads), None)
            yield Relay(source, target, "cube->vector" if ends[0] == "L0C" else "vector->cube", touch, consumer)
