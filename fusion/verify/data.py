"""Random inputs of an operator, rounded to its dtypes: the same for the same seed on every machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fusion.graph import StageGraph, Value

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Draw:
    """Normal values times `scale` plus `shift`; `special` puts inf, NaN or the dtype's extremes at a few places of every input."""

    seed: int = 0
    scale: float = 1.0
    shift: float = 0.0
    special: str = ""


def random_inputs(graph: StageGraph, draw: Draw) -> dict[str, torch.Tensor]:
    """All inputs by name, in the caller's layout. Integer inputs are positions of the dims that they index, or small numbers."""
    import torch

    generator = torch.Generator().manual_seed(draw.seed)
    return {v.name: _one(graph, v, draw, generator) for v in graph.inputs}


def _one(graph: StageGraph, value: Value, draw: Draw, generator: torch.Generator) -> torch.Tensor:
    import torch

    from fusion.graph.evaluate import external_shape, torch_dtype

    shape, dtype = external_shape(graph, value), torch_dtype(value.dtype)
    if not dtype.is_floating_point:
        return torch.randint(0, _limit(graph, value), shape, generator=generator).to(dtype)
    data = torch.randn(shape, generator=generator, dtype=torch.float64) * draw.scale + draw.shift
    data = data.to(dtype)
    for place, number in enumerate(_special(draw.special, dtype)):
        data.view(-1)[(7 * place + 3) % data.numel()] = number
    return data


def _special(kind: str, dtype: torch.dtype) -> tuple[float, ...]:
    import torch

    info = torch.finfo(dtype)
    return {"": (), "inf": (float("inf"), -float("inf")), "nan": (float("nan"),), "extreme": (info.max, info.min, info.tiny)}[kind]


def _limit(graph: StageGraph, value: Value) -> int:
    """One past the largest useful integer: the smallest dim that the value indexes."""
    ops = [op for s in graph.stages for op in s.body if op.fn in ("gather", "scatter_add") and op.args[-1] == value.name]
    sizes = [graph.dim(op.over[0]).size if op.fn == "gather" else graph.dim(op.attr).size for op in ops]
    return min(sizes, default=8)
