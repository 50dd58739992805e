"""The torch meaning and the operation counts of every operation: the language's whole vocabulary.

The third reading, tile code, is `fusion/emit/tile_ops.py`; a test holds the key sets equal. Elementwise operations broadcast
by dim name. `over` names the dims that a contraction, reduction, gather, scatter or top-k works on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch

Form = Literal["elementwise", "select", "contract", "reduce", "index", "gather", "scatter", "topk"]
# vector work: instructions of 256 bytes a repeat that one element of the iteration space costs, relative to an addition
Meaning = Callable[..., "torch.Tensor"]


@dataclass(frozen=True)
class OpSpec:
    """One operation: its form (how dims behave), arity, torch meaning on aligned tensors, and vector weight (1 = an addition)."""

    form: Form
    arity: int
    meaning: Meaning
    weight: float
    doc: str


def _call(name: str) -> Meaning:
    def run(*args: torch.Tensor) -> torch.Tensor:
        import torch

        result = getattr(torch, name)(*args)
        assert isinstance(result, torch.Tensor)
        return result

    return run


def _identity(x: torch.Tensor) -> torch.Tensor:
    return x


def _reciprocal_sqrt(x: torch.Tensor) -> torch.Tensor:
    return x.rsqrt()


def _sigmoid(x: torch.Tensor) -> torch.Tensor:
    return x.sigmoid()


def _relu(x: torch.Tensor) -> torch.Tensor:
    return x.clamp(min=0)


def _where(condition: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.where(condition, x, y)


def _sum(x: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
    return x.sum(dim=axes)


def _amax(x: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
    return x.amax(dim=axes)


def _amin(x: torch.Tensor, axes: tuple[int, ...]) -> torch.Tensor:
    return x.amin(dim=axes)


OPS: dict[str, OpSpec] = {
    "add": OpSpec("elementwise", 2, _call("add"), 1.0, "x + y"),
    "sub": OpSpec("elementwise", 2, _call("sub"), 1.0, "x - y"),
    "mul": OpSpec("elementwise", 2, _call("mul"), 1.0, "x * y"),
    "div": OpSpec("elementwise", 2, _call("div"), 2.2, "x / y"),
    "max": OpSpec("elementwise", 2, _call("maximum"), 1.0, "larger of x and y"),
    "min": OpSpec("elementwise", 2, _call("minimum"), 1.0, "smaller of x and y"),
    "exp": OpSpec("elementwise", 1, _call("exp"), 1.5, "e to the x"),
    "log": OpSpec("elementwise", 1, _call("log"), 1.5, "natural logarithm"),
    "sqrt": OpSpec("elementwise", 1, _call("sqrt"), 1.5, "square root"),
    "rsqrt": OpSpec("elementwise", 1, _reciprocal_sqrt, 2.5, "1 / square root"),
    "abs": OpSpec("elementwise", 1, _call("abs"), 1.0, "magnitude"),
    "relu": OpSpec("elementwise", 1, _relu, 1.0, "x where positive, else 0"),
    "sigmoid": OpSpec("elementwise", 1, _sigmoid, 4.0, "1 / (1 + e to the -x)"),
    "copy": OpSpec("elementwise", 1, _identity, 1.0, "x, broadcast to the result's dims"),
    "cast": OpSpec("elementwise", 1, _identity, 0.7, "x in the result's dtype, rounded to nearest even"),
    "where": OpSpec("select", 2, _where, 1.1, "x where the index conditions hold, else y"),
    "select": OpSpec("select", 3, _where, 1.1, "x where the first operand is not 0, else y"),
    "ge": OpSpec("elementwise", 2, _call("ge"), 1.0, "1 where x >= y, else 0"),
    "lt": OpSpec("elementwise", 2, _call("lt"), 1.0, "1 where x < y, else 0"),
    "index": OpSpec("index", 0, _identity, 1.0, "the position along the dim in `over`"),
    "sum": OpSpec("reduce", 1, _sum, 5.2, "sum over dims"),
    "amax": OpSpec("reduce", 1, _amax, 2.6, "largest over dims"),
    "amin": OpSpec("reduce", 1, _amin, 2.6, "smallest over dims"),
    "contract": OpSpec("contract", 2, _identity, 0.0, "sum of products over dims, accumulated in fp32 (Cube)"),
    "gather": OpSpec("gather", 2, _identity, 9.0, "x with the dim in `over` indexed by y; an index outside the dim gives 0"),
    "scatter_add": OpSpec("scatter", 2, _identity, 9.0, "adds x into the dim `attr` at the positions y; the dims in `over` are summed"),
    "topk": OpSpec("topk", 1, _identity, 12.0, "the largest along `over`, in falling order, as the dim `attr`"),
    "topk_index": OpSpec("topk", 1, _identity, 12.0, "positions of `topk`, ties to the smaller position"),
}
"""Relative weights follow the per-element cycle counts of vector instructions that are public for Ascend A2."""


def cube_flops(points: int) -> int:
    """Floating point operations of a contraction over `points` (output elements times contracted elements)."""
    return 2 * points


def vector_units(fn: str, points: int) -> float:
    """Vector work of an operation over `points` elements, in additions."""
    return OPS[fn].weight * points
