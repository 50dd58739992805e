"""The readable text form of a stage graph, and its parser: `from_text(to_text(g)) == g`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from fusion.errors import FusionError
from fusion.graph.stagegraph import StageGraph
from fusion.graph.types import Affine, Carry, Dim, Op, Operand, Role, Stage, Unit, Value


def _axes(layout: tuple[tuple[str, ...], ...]) -> str:
    return " ".join(axis[0] if len(axis) == 1 else f"({' '.join(axis)})" for axis in layout)


def _operand(arg: Operand) -> str:
    return arg if isinstance(arg, str) else repr(arg)


def _dim_line(d: Dim) -> str:
    tiles = f" tiles {' '.join(map(str, d.tiles))}" if d.tiles else ""
    return f"dim {d.name} = {d.size}{tiles}{f' step {d.step}' if d.step else ''}"


def _value_line(v: Value) -> str:
    after = f" after {' '.join(v.after)}" if v.after else ""
    return f"{v.role} {v.name} : {v.dtype}[{_axes(v.layout)}]{after}"


def _op_line(op: Op, graph: StageGraph) -> str:
    value = graph.value(op.out)
    text = f"  {op.out} : {value.dtype}[{' '.join(value.dims)}] = {op.fn}({', '.join(map(_operand, op.args))})"
    text += f" over {' '.join(op.over)}" if op.over else ""
    text += f" as {op.attr}" if op.attr else ""
    return text + (" if " + ", ".join(map(str, op.where)) if op.where else "")


def _lines(graph: StageGraph) -> Iterator[str]:
    yield f"graph {graph.name}"
    yield from map(_dim_line, graph.dims)
    yield from (_value_line(v) for v in graph.values if v.role == "input")
    for c in graph.carries:
        v = graph.value(c.state)
        yield f"state {v.name} : {v.dtype}[{' '.join(v.dims)}] along {c.along} from {_operand(c.init)} then {c.next}"
    for s in graph.stages:
        yield f"{s.unit} {s.name}{f' scan {s.scan}' if s.scan else ''}{f' loop {s.loop}' if s.loop else ''}:"
        yield from (_op_line(op, graph) for op in s.body)
    yield from (_value_line(v) for v in graph.values if v.role == "output")


def to_text(graph: StageGraph) -> str:
    """One line a dim, input, state, operation and output; stages in graph order."""
    return "\n".join(_lines(graph)) + "\n"


_DIM = re.compile(r"dim (\w+) = (\d+)(?: tiles ([\d ]+?))?(?: step (\d+))?")
_VALUE = re.compile(r"(input|output) (\w+) : (\w+)\[([^\]]*)\](?: after (.+))?")
_STATE = re.compile(r"state (\w+) : (\w+)\[([^\]]*)\] along (\w+) from (\S+) then (\w+)")
_STAGE = re.compile(r"(cube|vector) (\w+)(?: scan (\w+)(?: loop (\d+))?)?:")
_OP = re.compile(r"  (\w+) : (\w+)\[([^\]]*)\] = (\w+)\(([^)]*)\)(?: over (.+?))?(?: as (.+?))?(?: if (.+))?")
_TERM = re.compile(r"([+-]?)\s*(?:(\d+)\*)?(\w+)")


def _read_axes(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple((a or b).split()) for a, b in re.findall(r"\(([^)]*)\)|(\S+)", text))


def _read_operand(text: str) -> Operand:
    return text if re.fullmatch(r"[A-Za-z_]\w*", text) and text not in ("inf", "nan") else float(text)


def _read_affine(text: str) -> Affine:
    left = text.removesuffix(">= 0").strip()
    terms: list[tuple[str, int]] = []
    const = 0
    for sign, factor, name in _TERM.findall(left):
        amount = (-1 if sign == "-" else 1) * int(factor or 1)
        if name.isdigit():
            const += (-1 if sign == "-" else 1) * int(name)
        else:
            terms.append((name, amount))
    return Affine(tuple(terms), const)


class _Reader:
    def __init__(self) -> None:
        self.name = ""
        self.dims: list[Dim] = []
        self.values: list[Value] = []
        self.stages: list[tuple[str, Unit, str, int, list[Op]]] = []
        self.carries: list[Carry] = []

    def line(self, text: str) -> bool:
        if text.startswith("graph "):
            self.name = text.removeprefix("graph ").strip()
        elif m := _DIM.fullmatch(text):
            tiles = tuple(int(t) for t in (m[3] or "").split())
            self.dims.append(Dim(m[1], int(m[2]), tiles, int(m[4] or 0)))
        elif m := _VALUE.fullmatch(text):
            self.external(m)
        elif m := _STATE.fullmatch(text):
            self.values.append(Value(m[1], tuple(m[3].split()), m[2]))
            self.carries.append(Carry(m[1], m[6], _read_operand(m[5]), m[4]))
        elif m := _STAGE.fullmatch(text):
            self.stages.append((m[2], "cube" if m[1] == "cube" else "vector", m[3] or "", int(m[4] or 0), []))
        elif (m := _OP.fullmatch(text)) and self.stages:
            self.values.append(Value(m[1], tuple(m[3].split()), m[2]))
            args = tuple(_read_operand(a.strip()) for a in m[5].split(",") if a.strip())
            where = tuple(_read_affine(a) for a in (m[8] or "").split(",") if a.strip())
            self.stages[-1][4].append(Op(m[4], m[1], args, tuple((m[6] or "").split()), where, m[7] or ""))
        else:
            return False
        return True

    def external(self, m: re.Match[str]) -> None:
        axes = _read_axes(m[4])
        role: Role = "input" if m[1] == "input" else "output"
        value = Value(m[2], tuple(d for a in axes for d in a), m[3], role, axes, tuple((m[5] or "").split()))
        if role == "output":
            self.values = [value if v.name == value.name else v for v in self.values]
        else:
            self.values.append(value)


def from_text(text: str, source: str = "graph text") -> StageGraph:
    """Parses and verifies. Raises FusionError with the line that does not fit."""
    from fusion.graph.verify import verify

    reader = _Reader()
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.split("#")[0].rstrip()
        try:
            understood = not bare or reader.line(bare)
        except FusionError as error:
            raise FusionError(error.what, where=f"{source}:{number}", remedy=error.remedy) from error
        if not understood:
            raise FusionError(
                f"cannot read {line.strip()!r}", where=f"{source}:{number}", remedy="see docs/graph.md for the form of each line"
            )
    stages = tuple(Stage(n, u, tuple(ops), scan, loop) for n, u, scan, loop, ops in reader.stages)
    graph = StageGraph(reader.name, tuple(reader.dims), tuple(reader.values), stages, tuple(reader.carries))
    verify(graph)
    return graph
