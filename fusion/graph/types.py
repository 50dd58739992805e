"""The nouns of a stage graph: named dims, typed values, affine index conditions, operations and stages."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from fusion.errors import FusionError

Unit = Literal["cube", "vector"]
Role = Literal["input", "output", "intermediate"]
Operand = str | float  # the name of a value, or a constant

DTYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "int32": 4, "int64": 8, "int8": 1, "bool": 1}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RESERVED = ("inf", "nan", "over", *keyword.kwlist)  # words of the text form or of generated code


def check_name(name: str, what: str) -> None:
    """Refuses a name that cannot stand in the text form or in generated code."""
    if not _NAME.match(name):
        raise FusionError(f"{what} name {name!r} is not an identifier", remedy="use letters, digits and _ only, not starting with a digit")
    if name in _RESERVED:
        raise FusionError(f"{what} name {name!r} is a reserved word", remedy=f"use another name, like {name}_")


@dataclass(frozen=True)
class Dim:
    """A named extent. `tiles` are the tile sizes the planner may choose from (empty: it picks its own).

    `step` bounds how many indices one step of a scan along this dim takes: 1 for a recurrence over chunks, 0 for any.
    """

    name: str
    size: int
    tiles: tuple[int, ...] = ()
    step: int = 0

    def __post_init__(self) -> None:
        check_name(self.name, "dim")
        if self.size < 1:
            raise FusionError(f"dim {self.name} has size {self.size}", remedy="sizes are at least 1")
        if any(t < 1 for t in self.tiles) or self.step < 0:
            raise FusionError(f"dim {self.name}: tiles {self.tiles} and step {self.step} must be positive")


@dataclass(frozen=True)
class Value:
    """A tensor over named dims.

    `layout` groups the dims into the axes of the tensor that a caller passes: `(("b",), ("n", "g"), ("q",), ("d",))` is a
    4-D tensor whose second axis runs over n (outer) and g (inner). `after` names outputs that must exist on the host before
    this input does (the gradient of an output, for example).
    """

    name: str
    dims: tuple[str, ...]
    dtype: str
    role: Role = "intermediate"
    layout: tuple[tuple[str, ...], ...] = ()
    after: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_name(self.name, "value")
        if len(set(self.dims)) != len(self.dims):
            raise FusionError(f"value {self.name} names a dim twice: {' '.join(self.dims)}")
        if self.dtype not in DTYPE_BYTES:
            raise FusionError(f"value {self.name} has unknown dtype {self.dtype!r}", remedy="known: " + ", ".join(DTYPE_BYTES))
        if not self.layout:
            object.__setattr__(self, "layout", tuple((d,) for d in self.dims))
        if tuple(d for axis in self.layout for d in axis) != self.dims:
            raise FusionError(f"value {self.name}: layout {self.layout} does not list the dims {self.dims}")

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return DTYPE_BYTES[self.dtype]


@dataclass(frozen=True)
class Affine:
    """The condition `sum(coefficient * index of dim) + const >= 0`, with the terms sorted by dim."""

    terms: tuple[tuple[str, int], ...]
    const: int = 0

    def __post_init__(self) -> None:
        merged: dict[str, int] = {}
        for dim, coefficient in self.terms:
            merged[dim] = merged.get(dim, 0) + coefficient
        object.__setattr__(self, "terms", tuple(sorted((d, c) for d, c in merged.items() if c)))

    @cached_property
    def dims(self) -> tuple[str, ...]:
        return tuple(d for d, _ in self.terms)

    def __str__(self) -> str:
        text = " ".join(f"{'+' if c > 0 else '-'} {'' if abs(c) == 1 else f'{abs(c)}*'}{d}" for d, c in self.terms)
        text += f" {'+' if self.const >= 0 else '-'} {abs(self.const)}" if self.const or not text else ""
        return f"{text.removeprefix('+ ')} >= 0"


@dataclass(frozen=True)
class Op:
    """One assignment of a stage's body: `out = fn(args)`; what `over`, `where` and `attr` mean is in the table of `ops.py`."""

    fn: str
    out: str
    args: tuple[Operand, ...]
    over: tuple[str, ...] = ()
    where: tuple[Affine, ...] = ()
    attr: str = ""

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The values read, without constants, each once."""
        return tuple(dict.fromkeys(a for a in self.args if isinstance(a, str)))


@dataclass(frozen=True)
class Stage:
    """A small tensor program run by one unit. Stages with the same `scan` dim and `loop` step along it together.

    `loop` tells the scans along one dim apart: 0 for the first, 1 for the next.
    """

    name: str
    unit: Unit
    body: tuple[Op, ...]
    scan: str = ""
    loop: int = 0

    def __post_init__(self) -> None:
        check_name(self.name, "stage")
        if not self.body:
            raise FusionError(f"stage {self.name} is empty", remedy="assign at least one value in it, or leave it out")

    @property
    def writes(self) -> tuple[str, ...]:
        return tuple(op.out for op in self.body)

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """Values that come from outside of the stage, in order of first use."""
        own = set(self.writes)
        return tuple(dict.fromkeys(r for op in self.body for r in op.reads if r not in own))


@dataclass(frozen=True)
class Carry:
    """A state of a scan: reading `state` in a step gives the last step's `next`, at the first step `init`."""

    state: str
    next: str
    init: Operand
    along: str
