"""Times of single operations and transfers on a device, from counts alone; what the analytic estimate adds up."""

from __future__ import annotations

import math
from functools import lru_cache

from fusion.device import Device
from fusion.graph import Op
from fusion.graph.ops import OPS
from fusion.plan.tiling import Tiling

RATE_OF = {
    "div": "div", "rsqrt": "div", "sqrt": "div", "exp": "exp", "log": "exp", "sigmoid": "exp", "cast": "cast", "copy": "scalar",
    "abs": "scalar", "relu": "scalar", "where": "select", "select": "select", "sum": "reduce_sum", "amax": "reduce_max",
    "amin": "reduce_max", "gather": "gather", "scatter_add": "gather", "topk": "sort", "topk_index": "sort", "index": "progression",
}  # fmt: skip
RANK_STEPS = 6  # instructions that sort one row and take its best apart
TILE_K = 128  # depth of one step of a product in L0


def points(tiling: Tiling, op: Op) -> int:
    """Elements of the iteration space of a tile; those that are ranked for a top-k."""
    dims = tiling.graph.value(op.reads[0]).dims if OPS[op.fn].form == "topk" else tiling.graph.op_dims(op)
    return math.prod(tiling.tile(d) for d in dims)


def tile_bytes(tiling: Tiling, value: str) -> int:
    """Bytes of a value's tile; numbers without a tiled dim are moved as one block of 32 bytes."""
    shape = tiling.shape(value)
    return math.prod(tiling.tile(d) for d in shape) * tiling.graph.value(value).itemsize if shape else 32


class Terms:
    """The times of a graph's operations under one tiling and device, each worked out once."""

    def __init__(self, tiling: Tiling, device: Device) -> None:
        self.tiling, self.device = tiling, device
        self.cube: dict[str, float] = {}
        self.vector: dict[tuple[str, int], float] = {}
        self.sizes: dict[str, int] = {}

    def cube_us(self, op: Op) -> float:
        found = self.cube.get(op.out)
        if found is None:
            found = self.cube[op.out] = cube_us(self.tiling, op, self.device)
        return found

    def vector_us(self, op: Op, share: int) -> float:
        found = self.vector.get((op.out, share))
        if found is None:
            found = self.vector[op.out, share] = vector_us(self.tiling, op, self.device, share)
        return found

    def nbytes(self, value: str) -> int:
        found = self.sizes.get(value)
        if found is None:
            found = self.sizes[value] = tile_bytes(self.tiling, value)
        return found


@lru_cache(maxsize=256)
def terms(tiling: Tiling, device: Device) -> Terms:
    return Terms(tiling, device)


def cube_us(tiling: Tiling, op: Op, device: Device) -> float:
    """A product on one tile: operands to L0, then one Mmad a step of K. Loads and products of consecutive steps overlap."""
    size = tiling.graph.value(op.reads[0]).itemsize
    macs = points(tiling, op)
    steps = max(1, math.ceil(math.prod(tiling.tile(d) for d in op.over) / TILE_K))
    slow = device["cube.fp32_slowdown"] if size == 4 else 1.0
    product = macs * slow / device["cube.macs"] + steps * device["cube.start"]
    operands = sum(tile_bytes(tiling, r) for r in op.reads[-2:])
    loads = operands / (0.5 * (device["cube.l0a_rate"] + device["cube.l0b_rate"])) + 2 * steps * device["cube.load_start"]
    return (max(product, loads) + min(product, loads) / steps) / device.ghz / 1e3


def vector_us(tiling: Tiling, op: Op, device: Device, share: int) -> float:
    """An operation on one tile, split over `share` Vector cores; row operands are spread over the tile first, masks are made for it."""
    count = points(tiling, op) / share
    size = tiling.graph.value(op.reads[0] if op.reads else op.out).itemsize
    field = "half" if max(size, tiling.graph.value(op.out).itemsize) <= 2 else "float"
    cycles = _cycles(device, RATE_OF.get(op.fn, "binary" if OPS[op.fn].arity > 1 else "scalar"), field, count)
    if OPS[op.fn].form == "topk":  # row after row, in several instructions
        ranked = math.prod(tiling.tile(d) for d in op.over)
        cycles += count / ranked * RANK_STEPS * _cycles(device, "sort", field, 0)
    rows = [r for r in op.reads if 0 < len(tiling.shape(r)) < len(tiling.shape(op.out))]
    cycles += len(rows) * _cycles(device, "broadcast", field, count)
    cycles += len(op.where) * (_cycles(device, "binary", "float", count) + _cycles(device, "select", "float", count))
    return cycles / device.ghz / 1e3


def _cycles(device: Device, rate: str, field: str, count: float) -> float:
    start = device[f"rate.{rate}.start"] * device["vector.start"] / 22.0
    return device["vector.scale"] * device[f"rate.{rate}.{field}"] * count + start
