"""What the host does around the kernels, as data: one list of steps that both the CPU verification and the generated wrapper follow.

Tensors have names. A phase is what can run without further inputs: forward, then (once the caller has dO) backward.
"""

from __future__ import annotations

from dataclasses import dataclass

from fusion.graph.types import Operand

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Allocate:
    """A new tensor on the device, zeroed where blocks add to it."""

    name: str
    shape: Shape
    dtype: str
    zero: bool = False


@dataclass(frozen=True)
class Lanes:
    """`source` with a last axis of `count` copies: how a kernel loads a number for each head as a vector."""

    name: str
    source: str
    count: int


@dataclass(frozen=True)
class SumLanes:
    """`source` summed over its last axis: what an atomic sum of the Vector cores leaves to the host."""

    name: str
    source: str


@dataclass(frozen=True)
class Reorder:
    """`source` seen as `split`, its axes permuted to `order`, then seen as `shape`, of which `crop` is kept (the tails of tiles go).

    A kernel's argument is `dense`: copied, so that its elements lie in order.
    """

    name: str
    source: str
    split: Shape
    order: tuple[int, ...]
    shape: Shape
    crop: Shape = ()
    dense: bool = False


@dataclass(frozen=True)
class Apply:
    """One operation of a stage that runs on the host; operands are aligned tensors or numbers, `axes` those that it reduces."""

    name: str
    fn: str
    args: tuple[Operand, ...]
    dtype: str
    axes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Arg:
    """A launch argument: the tensor, seen as `shape`."""

    param: str
    tensor: str
    shape: Shape


@dataclass(frozen=True)
class Launch:
    """One kernel, with its arguments in the order of its parameters."""

    kernel: str
    args: tuple[Arg, ...]


Step = Allocate | Lanes | SumLanes | Reorder | Apply | Launch


@dataclass(frozen=True)
class Result:
    """An output of the operator: the tensor that holds it, and the shape in which the caller gets it."""

    value: str
    tensor: str
    shape: Shape


@dataclass(frozen=True)
class Phase:
    """One function of the wrapper. `inputs` are the tensors that the caller brings now, `saved` those kept for later phases."""

    name: str
    inputs: tuple[str, ...]
    steps: tuple[Step, ...]
    results: tuple[Result, ...]
    saved: tuple[str, ...] = ()


@dataclass(frozen=True)
class Input:
    """A tensor that the caller passes, under its name in the graph."""

    value: str
    tensor: str
    shape: Shape
    dtype: str
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class HostProgram:
    """All phases in order. `shapes` gives the shape of every tensor that a step makes or an input brings."""

    operator: str
    inputs: tuple[Input, ...]
    phases: tuple[Phase, ...]
    shapes: tuple[tuple[str, Shape], ...]

    @property
    def steps(self) -> tuple[Step, ...]:
        return tuple(s for p in self.phases for s in p.steps)

    def dtypes(self) -> dict[str, str]:
        """The dtype of every tensor by name."""
        found = {i.tensor: i.dtype for i in self.inputs}
        for step in self.steps:
            if isinstance(step, Allocate | Apply):
                found[step.name] = step.dtype
            elif not isinstance(step, Launch):
                found[step.name] = found[step.source]
        return found

    @property
    def launches(self) -> int:
        return sum(isinstance(s, Launch) for s in self.steps)

    @property
    def host_syncs(self) -> int:
        """How often one launch has to be over before the next one starts."""
        return self.launches - 1
