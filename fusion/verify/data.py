"""Random inputs of an operator, rounded to its dtypes: the same for the same seed on every machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fusion.graph import StageGraph, Value

if TYPE_CHECKING:
    import torch

PEAK = 64.0  # half a step of float16 is 0.03 here, of bfloat16 0.25
HALVINGS = 8


@dataclass(frozen=True)
class Draw:
    """Normal values times `scale` plus `shift`; `special` puts inf, NaN or the dtype's extremes at a few places of every input."""

    seed: int = 0
    scale: float = 1.0
    shift: float = 0.0
    special: str = ""


def random_inputs(graph: StageGraph, draw: Draw) -> dict[str, torch.Tensor]:
    """All inputs by name, in the caller's layout. Integer inputs are small numbers, or positions of
    the dim that they index, with one before its begin and one behind its end."""
    import torch

    generator = torch.Generator().manual_seed(draw.seed)
    return {v.name: _one(graph, v, draw, generator) for v in graph.inputs}


def tempered(graph: StageGraph, draw: Draw) -> Draw:
    """The draw with a scale halved until no golden result is larger than PEAK.

    The standard bounds the absolute error: beyond PEAK rounding the result alone may exceed it, as after two unscaled contractions.
    """
    from fusion.graph.evaluate import evaluate

    for _ in range(HALVINGS if not draw.special else 0):
        results = evaluate(graph, random_inputs(graph, draw)).values()
        if max((float(t.abs().max()) for t in results if t.is_floating_point() and t.numel()), default=0.0) <= PEAK:
            break
        draw = replace(draw, scale=draw.scale / 2, shift=draw.shift / 2)
    return draw


def _one(graph: StageGraph, value: Value, draw: Draw, generator: torch.Generator) -> torch.Tensor:
    import torch

    from fusion.graph.evaluate import external_shape, torch_dtype

    shape, dtype = external_shape(graph, value), torch_dtype(value.dtype)
    if not dtype.is_floating_point:
        limit = _limit(graph, value)
        drawn = torch.randint(0, limit, shape, generator=generator)
        for place, index in enumerate((-1, limit) if indexes(graph, value) else ()):
            drawn.view(-1)[(7 * place + 3) % drawn.numel()] = index
        return drawn.to(dtype)
    data = torch.randn(shape, generator=generator, dtype=torch.float64) * draw.scale + draw.shift
    data = data.to(dtype)
    for place, number in enumerate(_special(draw.special, dtype)):
        data.view(-1)[(7 * place + 3) % data.numel()] = number
    return data


def _special(kind: str, dtype: torch.dtype) -> tuple[float, ...]:
    import torch

    info = torch.finfo(dtype)
    return {"": (), "inf": (float("inf"), -float("inf")), "nan": (float("nan"),), "extreme": (info.max, info.min, info.tiny)}[kind]


def indexes(graph: StageGraph, value: Value) -> list[int]:
    """Sizes of the dims that an input names rows of."""
    ops = [op for s in graph.stages for op in s.body if op.fn in ("gather", "scatter_add") and op.args[-1] == value.name]
    return [graph.dim(op.over[0] if op.fn == "gather" else op.attr).size for op in ops]


def _limit(graph: StageGraph, value: Value) -> int:
    """One past the largest useful integer: the smallest dim that the value indexes."""
    return min(indexes(graph, value), default=8)
