"""What a pass is: a frozen dataclass whose fields are its options, with a name, a level and one `apply`."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Generic, Literal, TypeVar

from fusion.errors import FusionError

if TYPE_CHECKING:
    from fusion.graph import StageGraph
    from fusion.plan.types import Plan, Refusal
    from fusion.toolchain.model import TirPass

Level = Literal["graph", "plan", "tir"]
Setting = int | float | bool | str
A = TypeVar("A")

KEBAB = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*\Z")
_KINDS: dict[str, type[int] | type[float] | type[bool] | type[str]] = {"int": int, "float": float, "bool": bool, "str": str}


@dataclass(frozen=True)
class PassResult(Generic[A]):
    """What a pass leaves: the artefact, whether it differs from the one given, and what the pass would have done but must not."""

    artefact: A
    modified: bool
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True)
class Option:
    """One field of a pass: its name, type and default."""

    name: str
    kind: type[int] | type[float] | type[bool] | type[str]
    default: Setting


class _Named:
    """What all passes share: a name, a level, and options read off the dataclass fields."""

    name: ClassVar[str]
    level: ClassVar[Level]

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """The options in order of declaration. Raises FusionError where a field is no option."""
        return tuple(_option(cls, f.name, f.type, f.default) for f in fields(cls))  # pyright: ignore[reportArgumentType]

    @classmethod
    def doc(cls) -> str:
        """The first line of the docstring."""
        return (cls.__doc__ or "").strip().split("\n")[0]


def _option(cls: type, name: str, kind: object, default: object) -> Option:
    known = _KINDS.get(kind if isinstance(kind, str) else getattr(kind, "__name__", ""))
    if known is None:
        raise FusionError(f"option {name} of {cls.__name__} has type {kind}", remedy="options are int, float, bool or str")
    if default is MISSING or not isinstance(default, int | float | bool | str):
        raise FusionError(f"option {name} of {cls.__name__} has no default", remedy="a pass must run without options")
    return Option(name, known, default)


@dataclass(frozen=True)
class Pass(_Named, ABC, Generic[A]):
    """A rewrite of one kind of artefact. Subclasses write `apply`; who runs a pass calls `run`, which holds it to its word."""

    @abstractmethod
    def apply(self, artefact: A) -> PassResult[A]:
        """The rewritten artefact; the given one stays as it is."""

    def run(self, artefact: A) -> PassResult[A]:
        """`apply`, checked: the given artefact is untouched, and `modified` says whether the new one differs from it."""
        before = repr(artefact)
        result = self.apply(artefact)
        if repr(artefact) != before:
            raise FusionError("changed the artefact that it was given", where=f"pass {self.name}", remedy="return a new one")
        changed = result.artefact != artefact
        if changed != result.modified:
            what = "says that it changed nothing, but did" if changed else "says that it changed something, but did not"
            raise FusionError(what, where=f"pass {self.name}", remedy=f"return modified={changed}")
        return result


@dataclass(frozen=True)
class GraphPass(Pass["StageGraph"]):
    """StageGraph -> StageGraph; the meaning stays the same. On a plan, `rebase` fits the plan to the new graph."""

    level: ClassVar[Level] = "graph"

    def rebase(self, plan: Plan, graph: StageGraph) -> PassResult[Plan]:
        """The plan with its kernels worked out again for the rewritten graph; refusals instead where that is illegal."""
        from fusion.passes.rebase import rebase

        return rebase(plan, graph)


@dataclass(frozen=True)
class PlanPass(Pass["Plan"]):
    """Plan -> Plan."""

    level: ClassVar[Level] = "plan"


@dataclass(frozen=True)
class CompilerPass(_Named):
    """A pass on TIR that runs inside the compiler: a Python file with `run(mod, options) -> (mod, findings)`, and where it runs."""

    level: ClassVar[Level] = "tir"
    file: ClassVar[Path]
    at: ClassVar[str]

    def spec(self) -> TirPass:
        """What `fusion.toolchain.lower(..., tir_passes=...)` takes."""
        from fusion.toolchain.model import TirPass

        return TirPass(self.name, self.file.read_text(), self.at, {o.name: getattr(self, o.name) for o in self.options()})


AnyPass = GraphPass | PlanPass | CompilerPass
