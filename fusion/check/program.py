"""A kernel as its author wrote it: the frontend's statements with their source lines, before any pass of the compiler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

Json: TypeAlias = "Mapping[str, object]"
Unit = Literal["cube", "vector"]
LoopKind = Literal["serial", "parallel", "vectorized", "unrolled", "thread"]


# ---- expressions


@dataclass(frozen=True)
class Const:
    value: int | float
    dtype: str


@dataclass(frozen=True)
class Text:
    value: str


@dataclass(frozen=True)
class Name:
    """A variable: a loop counter, a block or thread index, a symbolic size, a scalar parameter."""

    name: str
    dtype: str = "int32"


@dataclass(frozen=True)
class Binary:
    op: str
    left: Expr
    right: Expr
    dtype: str


@dataclass(frozen=True)
class Cast:
    value: Expr
    dtype: str


@dataclass(frozen=True)
class Choice:
    condition: Expr
    yes: Expr
    no: Expr


@dataclass(frozen=True)
class Load:
    buffer: str
    indices: tuple[Expr, ...]
    dtype: str


@dataclass(frozen=True)
class Pointer:
    """`extent` elements of a buffer from element `offset` on, counted in its flat order."""

    buffer: str
    offset: Expr
    extent: Expr


@dataclass(frozen=True)
class Region:
    """A box of a buffer: where it starts and how far it goes along every axis."""

    buffer: str
    starts: tuple[Expr, ...]
    extents: tuple[Expr, ...]


@dataclass(frozen=True)
class Call:
    op: str
    args: tuple[Expr, ...]
    dtype: str


Expr: TypeAlias = "Const | Text | Name | Binary | Cast | Choice | Load | Pointer | Region | Call"


# ---- statements


@dataclass(frozen=True)
class Seq:
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class For:
    var: str
    start: Expr
    extent: Expr
    kind: LoopKind
    stages: int
    body: Stmt


@dataclass(frozen=True)
class While:
    condition: Expr
    body: Stmt


@dataclass(frozen=True)
class If:
    condition: Expr
    then: Stmt
    otherwise: Stmt


@dataclass(frozen=True)
class Let:
    name: str
    value: Expr
    body: Stmt


@dataclass(frozen=True)
class Scope:
    """`with T.Scope("C")` or "V": its body runs on one unit only."""

    unit: Unit
    body: Stmt


@dataclass(frozen=True)
class Alloc:
    name: str
    dtype: str
    shape: tuple[Expr, ...]
    scope: str
    line: int
    init: Expr | None = None


@dataclass(frozen=True)
class Block:
    allocs: tuple[Alloc, ...]
    body: Stmt


@dataclass(frozen=True)
class Store:
    line: int
    buffer: str
    indices: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True)
class Eval:
    line: int
    call: Call


Stmt: TypeAlias = "Seq | For | While | If | Let | Scope | Block | Store | Eval"


@dataclass(frozen=True)
class Param:
    """A parameter: a buffer in GM, or a scalar (`shape` None)."""

    name: str
    dtype: str
    shape: tuple[Expr, ...] | None


@dataclass(frozen=True)
class Program:
    """`blocks` is the grid; `vid` names the Vector core's index if the kernel has one, and `threads` how many share a block."""

    name: str
    params: tuple[Param, ...]
    block_var: str
    blocks: Expr
    vid: str
    threads: int
    body: Stmt
    allocs: tuple[Alloc, ...] = field(default=())

    @property
    def buffers(self) -> tuple[Param, ...]:
        return tuple(p for p in self.params if p.shape is not None)

    def open_sizes(self) -> tuple[str, ...]:
        """Names of the sizes that the kernel leaves open, in the order in which the parameters use them."""
        names = [n.name for p in self.buffers for size in p.shape or () for n in walk(size) if isinstance(n, Name)]
        return tuple(dict.fromkeys(names))

    def scalars(self) -> tuple[Param, ...]:
        return tuple(p for p in self.params if p.shape is None)


def walk(expr: Expr) -> Iterator[Expr]:
    """An expression and everything inside of it."""
    yield expr
    match expr:
        case Binary(left=a, right=b):
            parts: tuple[Expr, ...] = (a, b)
        case Cast(value=a):
            parts = (a,)
        case Choice(condition=a, yes=b, no=c):
            parts = (a, b, c)
        case Load(indices=parts) | Call(args=parts):
            pass
        case Pointer(offset=a, extent=b):
            parts = (a, b)
        case Region(starts=a, extents=b):
            parts = (*a, *b)
        case _:
            parts = ()
    for part in parts:
        yield from walk(part)


def names_in(expr: Expr) -> frozenset[str]:
    return frozenset(part.name for part in walk(expr) if isinstance(part, Name))


# ---- from JSON


def parse(data: Json) -> Program:
    """The program that the inspector wrote."""
    launch = cast("Mapping[str, Sequence[object]]", data["launch"])
    block = launch.get("blockIdx.x", ["", ["c", 1, "int32"]])
    second = launch.get("blockIdx.y") or launch.get("threadIdx.x")
    threads = int(cast("int", _list(second[1])[1])) if second else 1
    body = _stmt(data["body"])
    params = tuple(_param(item) for item in cast("Sequence[Json]", data["params"]))
    vid = str(launch["blockIdx.y"][0]) if "blockIdx.y" in launch else ""
    return Program(str(data["name"]), params, str(block[0]), _expr(block[1]), vid, threads, body, tuple(_allocs(body)))


def _param(item: Json) -> Param:
    shape = item["shape"]
    return Param(str(item["name"]), str(item["dtype"]), None if shape is None else _exprs(shape))


def _list(data: object) -> Sequence[object]:
    return cast("Sequence[object]", data)


def _exprs(data: object) -> tuple[Expr, ...]:
    return tuple(_expr(item) for item in _list(data))


def _expr(data: object) -> Expr:
    kind, *rest = _list(data)
    match kind:
        case "c":
            return Const(cast("int | float", rest[0]), str(rest[1]))
        case "s":
            return Text(str(rest[0]))
        case "v":
            return Name(str(rest[0]), str(rest[1]))
        case "op":
            return Binary(str(rest[0]), _expr(rest[1]), _expr(rest[2]), str(rest[3]))
        case "cast":
            return Cast(_expr(rest[0]), str(rest[1]))
        case "select":
            return Choice(_expr(rest[0]), _expr(rest[1]), _expr(rest[2]))
        case "load":
            return Load(str(rest[0]), _exprs(rest[1]), str(rest[2]))
        case "ptr":
            return Pointer(str(rest[0]), _expr(rest[1]), _expr(rest[2]))
        case "region":
            return Region(str(rest[0]), _exprs(rest[1]), _exprs(rest[2]))
        case _:
            return Call(str(rest[0]), _exprs(rest[1]), str(rest[2]))


def _stmt(data: object) -> Stmt:
    kind, *rest = _list(data)
    match kind:
        case "seq":
            return Seq(tuple(_stmt(item) for item in _list(rest[0])))
        case "eval":
            return Eval(cast("int", rest[0]), cast("Call", _expr(rest[1])))
        case "store":
            return Store(cast("int", rest[0]), str(rest[1]), _exprs(rest[2]), _expr(rest[3]))
        case "for":
            stages = int(cast("Mapping[str, int]", rest[4]).get("num_stages", 0))
            return For(str(rest[0]), _expr(rest[1]), _expr(rest[2]), cast("LoopKind", rest[3]), stages, _stmt(rest[5]))
        case "while":
            return While(_expr(rest[0]), _stmt(rest[1]))
        case "if":
            return If(_expr(rest[0]), _stmt(rest[1]), _stmt(rest[2]))
        case "let":
            return Let(str(rest[0]), _expr(rest[1]), _stmt(rest[2]))
        case "scope":
            return Scope("cube" if rest[0] == "cube" else "vector", _stmt(rest[1]))
        case _:
            return _block(rest)


def _block(rest: Sequence[object]) -> Stmt:
    inits = cast("Mapping[str, object]", rest[1])
    allocs: list[Alloc] = []
    for item in _list(rest[0]):
        name, dtype, shape, scope, line = _list(item)
        init = _expr(inits[str(name)]) if str(name) in inits else None
        allocs.append(Alloc(str(name), str(dtype), _exprs(shape), str(scope), cast("int", line), init))
    return Block(tuple(allocs), _stmt(rest[2]))


def children(stmt: Stmt) -> tuple[Stmt, ...]:
    match stmt:
        case Seq(body=body):
            return body
        case If(then=then, otherwise=otherwise):
            return then, otherwise
        case For(body=body) | While(body=body) | Let(body=body) | Scope(body=body) | Block(body=body):
            return (body,)
        case _:
            return ()


def _allocs(stmt: Stmt) -> Iterator[Alloc]:
    if isinstance(stmt, Block):
        yield from stmt.allocs
    for child in children(stmt):
        yield from _allocs(child)


# ---- printing


def show(expr: Expr) -> str:
    """An expression as the author would write it."""
    match expr:
        case Const(value=value):
            return f"{value:g}" if isinstance(value, float) else str(value)
        case Text(value=value):
            return repr(value)
        case Name(name=name):
            return name
        case Binary(op="min" | "max" as op, left=a, right=b):
            return f"{op}({show(a)}, {show(b)})"
        case Binary(op="not", left=a):
            return f"not {show(a)}"
        case Binary(op=op, left=a, right=b):
            return f"{_inner(a)} {'%' if op == 'mod' else op} {_inner(b)}"
        case Cast(value=a):
            return show(a)
        case Choice(condition=a, yes=b, no=c):
            return f"{show(b)} if {show(a)} else {show(c)}"
        case Load(buffer=name, indices=indices):
            return f"{name}[{', '.join(map(show, indices))}]"
        case Pointer(buffer=name):
            return name
        case Region(buffer=name, starts=starts, extents=extents):
            return f"{name}[{', '.join(f'{show(s)}:+{show(e)}' for s, e in zip(starts, extents, strict=False))}]"
        case Call(op=op, args=args):
            return f"{op}({', '.join(map(show, args))})"


def _inner(expr: Expr) -> str:
    text = show(expr)
    return f"({text})" if isinstance(expr, Binary) and expr.op not in ("min", "max") else text
