"""What goes into a lowering and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Target = Literal["ascendc", "pto"]
ErrorKind = Literal["crash", "fatal", "frontend", "timeout", "unavailable"]
Role = Literal["tensor", "output", "workspace", "relay", "scalar"]

TARGETS: tuple[Target, ...] = ("ascendc", "pto")


def _no_args() -> Mapping[str, object]:
    return {}


@dataclass(frozen=True)
class KernelSource:
    """One kernel to lower: the text of a TileLang module and how to get a prim_func out of it.

    `entry` names a `@tilelang.jit` factory, a `@T.prim_func`, or a function that returns one; empty: the only one in the module.
    `args` are the factory's keyword arguments (numbers, strings, lists). `pass_configs` None: those of the `@tilelang.jit` decorator,
    or Developer mode when nothing is decorated.
    """

    name: str
    source: str
    entry: str = ""
    args: Mapping[str, object] = field(default_factory=_no_args)
    pass_configs: Mapping[str, bool] | None = None


@dataclass(frozen=True)
class TirPass:
    """A pass of ours inside the compiler's pipeline: the text of a Python file with `run(mod, options) -> (mod, findings)`.

    `at` is "before PASS" or "after PASS" with the name that `tilelang.transform` or `tir.transform` has for it, or "before codegen".
    """

    name: str
    source: str
    at: str
    options: Mapping[str, object] = field(default_factory=_no_args)


@dataclass(frozen=True)
class Param:
    """One launch parameter. A dimension is a number, or an expression's text when the kernel leaves it open; a scalar has no shape.

    Roles: `output` (in out_idx), `workspace` (in workspace_idx, or so named), `relay` (a workspace that the compiler added),
    `tensor` (any other buffer), `scalar`.
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]
    role: Role


@dataclass(frozen=True)
class OnChip:
    """Where memory planning put one on-chip buffer: storage scope as TIR calls it, address and size in bytes."""

    name: str
    scope: str
    address: int
    bytes: int


@dataclass(frozen=True)
class LowerError:
    """Why a kernel did not lower: `message` is one line, `pass_name` the step it happened in ("" unknown), `details` the rest."""

    kind: ErrorKind
    message: str
    pass_name: str = ""
    details: str = ""
    target: str = ""


@dataclass(frozen=True)
class Lowered:
    """What the compiler made of one kernel. With an `error`, the fields that it prevented are empty.

    `entry` is the prim_func's name: the generated function is `ENTRY_kernel(params..., fftsAddr)`. `blocks` is the grid, `threads`
    the extent of `vid` (None: not named), `task_type` the declared unit mix (MIX_AIC_1_2, ...). `seconds` is the compiler's time over
    all targets. `findings` come from TirPasses. `dumps` holds (pass, TIR after it) where `print_after` asked, unchanged TIR left out.
    """

    name: str
    ascendc: str | None = None
    pto: str | None = None
    tir: str = ""
    error: LowerError | None = None
    entry: str = ""
    params: tuple[Param, ...] = ()
    blocks: int | str = 1
    threads: int | None = None
    task_type: str = ""
    on_chip: tuple[OnChip, ...] = ()
    findings: tuple[Mapping[str, object], ...] = ()
    dumps: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0
    cached: bool = False
    log: str = ""

    def code(self, target: Target) -> str | None:
        """The generated source for one target, None if it was not asked for or failed."""
        return self.ascendc if target == "ascendc" else self.pto
