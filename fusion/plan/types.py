"""What a plan is: kernels as sets of stages, with their grid, loops, handoffs and the place of every value that crosses stages."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from fusion.graph import StageGraph

Memory = Literal["global", "workspace", "relay", "ub", "l1", "l0c", "atomic"]
Direction = Literal["cube->vector", "vector->cube"]
Level = Literal["prologue", "body", "epilogue"]


@dataclass(frozen=True)
class Handoff:
    """A value that goes from one unit to the other inside of a kernel, through GM.

    `kind` is an explicit workspace or the compiler's relay. `slots` is how many iterations apart writer and reader may be: 1 reuses
    one tile, 0 has one tile for every iteration. `free` adds a handoff back that tells the writer that the tile has been read.
    """

    value: str
    name: str
    direction: Direction
    level: Level
    kind: Literal["workspace", "relay"] = "workspace"
    slots: int = 1
    free: bool = False


@dataclass(frozen=True)
class Placement:
    """Where a value lives that more than one stage, or the caller, sees."""

    value: str
    memory: Memory


@dataclass(frozen=True)
class Kernel:
    """A launch: stages in order of execution, dims spread over blocks (`grid`) and run through inside of a block (`loops`).

    `persistent` launches one block per core, each looping over tasks; otherwise a block is a task. `threads` is how many Vector
    cores share a block's tile. `retained` names values kept in UB for later stages at full precision.
    """

    name: str
    stages: tuple[str, ...]
    grid: tuple[str, ...]
    loops: tuple[str, ...] = ()
    persistent: bool = False
    threads: int = 2
    handoffs: tuple[Handoff, ...] = ()
    placements: tuple[Placement, ...] = ()

    def place(self, value: str) -> Memory | None:
        """Where the kernel keeps the value; None if it does not cross stages."""
        return next((p.memory for p in self.placements if p.value == value), None)


@dataclass(frozen=True)
class Plan:
    """Kernels in launch order, the tile size of every tiled dim, and the stages that the host wrapper runs itself."""

    graph: StageGraph
    tiles: tuple[tuple[str, int], ...]
    kernels: tuple[Kernel, ...]
    host_stages: tuple[str, ...] = ()
    device: str = "910B3"
    notes: tuple[str, ...] = field(default=())

    def kernel_of(self, stage: str) -> Kernel | None:
        """The kernel that runs the stage; None if the host does."""
        return next((k for k in self.kernels if stage in k.stages), None)

    def __str__(self) -> str:
        from fusion.plan.text import to_text

        return to_text(self)


@dataclass(frozen=True)
class Refusal:
    """Why something cannot be done: the rule, where it fails, and the numbers."""

    rule: str
    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.why} (rule {self.rule})"
