"""What emission produces: TileLang source per kernel with its parameters and buffers, and the host wrapper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fusion.emit.hostprogram import HostProgram
from fusion.plan.types import Plan

Scope = Literal["ub", "l1", "l0c"]
ParamRole = Literal["input", "output", "workspace", "atomic"]

DTYPE_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "int32": 4, "uint8": 1, "int8": 1}


@dataclass(frozen=True)
class GmParam:
    """A parameter of a kernel. `value` is the graph value it holds ("" for what only synchronizes).

    `order` lists the value's dims as the kernel sees them, `lanes` says that a last axis of copies follows.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    role: ParamRole
    value: str = ""
    order: tuple[str, ...] = ()
    lanes: bool = False

    @property
    def nbytes(self) -> int:
        total = DTYPE_BYTES[self.dtype]
        for s in self.shape:
            total *= s
        return total


@dataclass(frozen=True)
class TileBuffer:
    """An on-chip buffer of one core (UB: of one Vector core)."""

    name: str
    scope: Scope
    shape: tuple[int, ...]
    dtype: str

    @property
    def nbytes(self) -> int:
        total = DTYPE_BYTES[self.dtype]
        for s in self.shape:
            total *= s
        return -(-total // 32) * 32


@dataclass(frozen=True)
class Line:
    """A line of a kernel's body with the stage it belongs to; a comment if `text` starts with #."""

    text: str
    stage: str


@dataclass(frozen=True)
class KernelProgram:
    """One kernel's source; `stage_lines` maps 1-based source lines to stages."""

    name: str
    source: str
    params: tuple[GmParam, ...]
    buffers: tuple[TileBuffer, ...]
    blocks: int
    stage_lines: tuple[tuple[int, str], ...]

    def on_chip(self, scope: Scope) -> int:
        """Bytes of all buffers in a memory, without reuse by the compiler."""
        return sum(b.nbytes for b in self.buffers if b.scope == scope)

    @property
    def workspace_bytes(self) -> int:
        """GM bytes that exist only for handoffs inside of the kernel."""
        return sum(p.nbytes for p in self.params if p.role == "workspace")


@dataclass(frozen=True)
class Program:
    """Everything that is emitted for a plan: kernels, what the host does around them, and that as Python source."""

    plan: Plan
    kernels: tuple[KernelProgram, ...]
    host: HostProgram
    wrapper: str
