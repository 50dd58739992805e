"""The least time an operator can take on a device: its contractions at peak, or its inputs and outputs at full bandwidth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fusion.device import Device
from fusion.graph import Affine, StageGraph
from fusion.graph.ops import OPS
from fusion.plan.masks import conditions


@dataclass(frozen=True)
class Floor:
    """`us` is the larger of the two."""

    flops: float
    nbytes: int
    compute_us: float
    memory_us: float

    @property
    def us(self) -> float:
        return max(self.compute_us, self.memory_us)


@lru_cache(maxsize=32)
def density(graph: StageGraph) -> float:
    """The share of index pairs that all masks of the graph leave."""
    masks = [a for a in conditions(graph) if len(a.terms) == 2]
    dims = tuple(sorted({d for a in masks for d, _ in a.terms}))
    if len(dims) != 2:
        return 1.0
    rows, columns = (np.arange(graph.dim(d).size) for d in dims)
    step = max(1, len(rows) // 512)
    kept = [_kept(masks, {dims[0]: r, dims[1]: columns}) for r in rows[step // 2 :: step]]
    return float(np.mean(kept))


def _kept(masks: list[Affine], at: dict[str, object]) -> float:
    inside = np.array(True)
    for a in masks:
        inside = inside & (sum(c * np.asarray(at[d]) for d, c in a.terms) + a.const >= 0)
    return float(np.mean(inside))


def floor(graph: StageGraph, device: Device) -> Floor:
    """max(operations / peak, bytes of inputs and outputs / HBM bandwidth)."""
    masked = {d for a in conditions(graph) for d, _ in a.terms}
    flops = 0.0
    for op in (op for s in graph.stages for op in s.body if OPS[op.fn].form == "contract"):
        dims = graph.op_dims(op)
        points = math.prod(graph.dim(d).size for d in dims)
        flops += 2.0 * points * (density(graph) if masked and masked <= set(dims) else 1.0)
    nbytes = sum(graph.size(v.dims) * v.itemsize for v in (*graph.inputs, *graph.outputs))
    return Floor(flops, nbytes, flops / device.peak_tflops / 1e6, nbytes / device["gm.hbm_rate"] / 1e3)
