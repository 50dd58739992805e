"""The lines of a plan file, read into what they say; `complete.py` makes a plan of it.

plan gqa_sink_bwd on 910B3        the operator (and the device)
tiles q=64 k=128                  tile sizes; dims left out are chosen
kernel fwd: qk softmax pv         a launch with its stages, in any order; further `stages` lines add to it
  grid n g q                      dims spread over blocks
  loops k                         dims that a block runs through
  persistent [no]                 one block per core, or per task
  threads 2                       Vector cores that share a tile
  workspace s as workspace_s slots 1 free      a value handed between Cube and Vector: `slots each` has a tile for every iteration
  relay p                         the same through the compiler's own workspace (threads 1)
  place p ub                      where a value lives: checked, not chosen
host: cast_dk                     stages that the host runs
note TEXT                         kept with the plan
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, get_args

from fusion.errors import FusionError, did_you_mean
from fusion.plan.types import Memory

FORM = "the form of each line is in docs/plans.md"
_HANDOFF = re.compile(r"(\w+)(?: as (\w+))?(?: slots (\d+|each))?( free)?")
_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class HandoffLine:
    """What a file says about a handoff; None where it leaves the choice."""

    value: str
    kind: Literal["workspace", "relay"]
    name: str
    slots: int | None
    free: bool | None
    line: int


@dataclass(frozen=True)
class PlaceLine:
    value: str
    memory: Memory
    line: int


@dataclass
class KernelLines:
    """What a file says about a kernel; None where it leaves the choice."""

    name: str
    line: int
    stages: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    grid: tuple[str, ...] | None = None
    loops: tuple[str, ...] | None = None
    persistent: bool | None = None
    threads: int | None = None
    handoffs: list[HandoffLine] = field(default_factory=list[HandoffLine])
    places: list[PlaceLine] = field(default_factory=list[PlaceLine])


@dataclass
class PlanLines:
    """A whole file. `lines` remembers where each thing was said, for messages."""

    source: str
    operator: str = ""
    device: str = ""
    tiles: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])  # dim -> (tile, line)
    kernels: list[KernelLines] = field(default_factory=list[KernelLines])
    host: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    notes: list[str] = field(default_factory=list[str])

    def error(self, line: int, what: str, remedy: str = "") -> FusionError:
        return FusionError(what, where=f"{self.source}:{line}" if line else self.source, remedy=remedy)


def read(text: str, source: str) -> PlanLines:
    """Reads a plan file. Raises FusionError with the line that cannot be understood."""
    plan = PlanLines(source)
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.split("#")[0].rstrip()
        if bare:
            _Line(plan, number, bare).read()
    if not plan.kernels:
        raise plan.error(0, "no kernel in this plan", "start one with `kernel NAME: STAGE STAGE ...`")
    return plan


@dataclass(frozen=True)
class _Line:
    plan: PlanLines
    number: int
    text: str

    def read(self) -> None:
        word, _, rest = self.text.strip().partition(" ")
        table = self.inside() if self.text[0].isspace() else self.outside()
        if word not in table:
            raise self.error(f"cannot read {self.text.strip()!r}", did_you_mean(word, table))
        table[word](rest.strip())

    def error(self, what: str, remedy: str = FORM) -> FusionError:
        return self.plan.error(self.number, what, remedy)

    def outside(self) -> dict[str, Callable[[str], None]]:
        return {"plan": self.header, "tiles": self.tiles, "kernel": self.kernel, "host:": self.host, "note": self.plan.notes.append}

    def inside(self) -> dict[str, Callable[[str], None]]:
        if not self.plan.kernels:
            raise self.error(f"{self.text.strip()!r} is indented, but no kernel is open", "start one with `kernel NAME: STAGE ...`")
        return {
            "stages": self.stages,
            "grid": self.grid,
            "loops": self.loops,
            "persistent": self.persistent,
            "threads": self.threads,
            "workspace": self.workspace,
            "relay": self.relay,
            "place": self.place,
        }

    @property
    def current(self) -> KernelLines:
        return self.plan.kernels[-1]

    # ---- lines of the plan

    def header(self, rest: str) -> None:
        self.plan.operator, _, self.plan.device = (part.strip() for part in rest.partition(" on "))

    def tiles(self, rest: str) -> None:
        for item in rest.split():
            dim, _, size = item.partition("=")
            if not size.isdigit():
                raise self.error(f"tile {item!r}", "write it like q=64")
            self.plan.tiles[dim] = (int(size), self.number)

    def kernel(self, rest: str) -> None:
        name, colon, stages = rest.partition(":")
        if not colon or not _NAME.fullmatch(name.strip()):
            raise self.error(f"cannot read {self.text!r}", "write it like `kernel NAME: STAGE STAGE ...`")
        if any(k.name == name.strip() for k in self.plan.kernels):
            raise self.error(f"kernel {name.strip()} is defined twice", "every kernel needs its own name")
        self.plan.kernels.append(KernelLines(name.strip(), self.number))
        self.stages(stages)

    def host(self, rest: str) -> None:
        self.plan.host += [(s, self.number) for s in rest.split()]

    # ---- lines of a kernel

    def stages(self, rest: str) -> None:
        self.current.stages += [(s, self.number) for s in rest.split()]

    def grid(self, rest: str) -> None:
        self.current.grid = tuple(rest.split())

    def loops(self, rest: str) -> None:
        self.current.loops = tuple(rest.split())

    def persistent(self, rest: str) -> None:
        if rest not in ("", "no"):
            raise self.error(f"persistent {rest!r}", "write `persistent` or `persistent no`")
        self.current.persistent = rest == ""

    def threads(self, rest: str) -> None:
        if rest not in ("1", "2"):
            raise self.error(f"threads {rest!r}", "one or two Vector cores share a tile: 1 or 2")
        self.current.threads = int(rest)

    def workspace(self, rest: str) -> None:
        self.handoff("workspace", rest)

    def relay(self, rest: str) -> None:
        self.handoff("relay", rest)

    def handoff(self, kind: Literal["workspace", "relay"], rest: str) -> None:
        m = _HANDOFF.fullmatch(rest)
        if not m:
            raise self.error(f"cannot read {self.text.strip()!r}", f"write it like `{kind} VALUE [as NAME] [slots 1|each] [free]`")
        slots = None if m[3] is None else 0 if m[3] == "each" else int(m[3])
        said = slots is not None or m[4] is not None
        self.current.handoffs.append(HandoffLine(m[1], kind, m[2] or "", slots, (m[4] is not None) if said else None, self.number))

    def place(self, rest: str) -> None:
        value, _, memory = rest.partition(" ")
        for known in get_args(Memory):
            if memory == known:
                self.current.places.append(PlaceLine(value, known, self.number))
                return
        raise self.error(f"place {rest!r}", did_you_mean(memory, get_args(Memory)))
