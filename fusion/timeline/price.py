"""From instruction records to items with costs: what each instruction takes on its pipe, by the numbers of a device."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from fusion.device import Device
from fusion.simulator.trace import op_names
from fusion.timeline.library import ITEM

Records = npt.NDArray[np.void]
Floats = npt.NDArray[np.float64]
V, M, MTE1, MTE2, MTE3, FIX, ALL = 1, 2, 3, 4, 5, 6, 7
RUN, SET, WAIT, BARRIER, CROSS_SET, CROSS_WAIT, SCALAR, SYNC_ALL, END = range(9)

RATE_OF = {
    **dict.fromkeys(("Add", "Sub", "Mul", "Max", "Min", "And", "Or", "Xor", "MulAddDst", "Axpy"), "binary"),
    **dict.fromkeys(
        ("Adds", "Subs", "Muls", "Maxs", "Mins", "Relu", "Abs", "Not", "Duplicate", "DataCopy", "ClampMax", "ClampMin", "LeakyRelu"),
        "scalar",
    ),
    **dict.fromkeys(("Exp", "Ln", "Sin", "Cos", "Power", "Sigmoid", "Silu"), "exp"),
    **dict.fromkeys(("Div", "Divs", "Reciprocal", "Sqrt", "Rsqrt"), "div"),
    **dict.fromkeys(("Cast", "Round"), "cast"),
    **dict.fromkeys(("Select",), "select"),
    **dict.fromkeys(("Gather", "Gatherb", "GatherMask"), "gather"),
    **dict.fromkeys(("ReduceMax", "ReduceMin", "WholeReduceMax", "WholeReduceMin", "BlockReduceMax", "BlockReduceMin"), "reduce_max"),
    **dict.fromkeys(("ReduceSum", "WholeReduceSum", "BlockReduceSum", "Sum"), "reduce_sum"),
    **dict.fromkeys(("Broadcast",), "broadcast"),
    **dict.fromkeys(("Brcb", "Transpose", "TransDataTo5HD"), "brcb"),
    **dict.fromkeys(("ArithProgression", "CreateVecIndex"), "progression"),
    **dict.fromkeys(("Sort32", "MrgSort"), "sort"),
}


@lru_cache(maxsize=8)
def _rate_names() -> tuple[str, ...]:
    return tuple(RATE_OF.get(op, "default") for op in op_names())


def _table(device: Device, field: str) -> npt.NDArray[np.float64]:
    """Cycles by op number."""
    return np.array([device[f"rate.{r}.{field}"] for r in _rate_names()])


def vector_ns(records: Records, device: Device) -> npt.NDArray[np.float64]:
    """scale * k * elements + start; the starts of all rates move with `vector.start` from their common value of 22."""
    op = records["op"]
    k = np.where(records["element_bytes"] <= 2, _table(device, "half")[op], _table(device, "float")[op])
    start = _table(device, "start")[op] * device["vector.start"] / 22.0
    return (device["vector.scale"] * k * records["elements"] + start) / device.ghz


def mmad_ns(records: Records, device: Device) -> npt.NDArray[np.float64]:
    """Fractal steps of 16 x 16 x 32 bytes, one a cycle for fp16."""
    size = records["element_bytes"]
    up = [-(-records[d].astype(np.int64) // 16) * 16 for d in "mn"]
    macs = up[0] * up[1] * (-(-records["k"].astype(np.int64) // 16) * 16)
    slow = np.where(size == 4, device["cube.fp32_slowdown"], np.where(size == 1, 1 / device["cube.int8_speedup"], 1.0))
    return (macs * slow / device["cube.macs"] + device["cube.start"]) / device.ghz


def load_ns(records: Records, device: Device) -> npt.NDArray[np.float64]:
    """L1 to L0A and L0B; the record does not tell which, so the mean of the two rates."""
    rate = 2.0 / (1.0 / device["cube.l0a_rate"] + 1.0 / device["cube.l0b_rate"])
    return (records["bytes"] / rate + device["cube.load_start"]) / device.ghz


def _transfers(items: Records, records: Records, device: Device, atomic: npt.NDArray[np.bool_], missing: Floats) -> None:
    """GM bytes, what they may flow at, and the latency behind them. A load that misses L2 flows at what a core gets from DDR."""
    moves = (records["kind"] == RUN) & (records["gm_bytes"] > 0)
    weight = np.where(atomic, device["gm.atomic_factor"], 1.0)
    items["bytes"] = np.where(moves, records["gm_bytes"] * weight, 0)
    loads = records["pipe"] == MTE2
    items["latency"] = np.where(moves, np.where(loads, device["gm.latency"], device["gm.store_latency"]), 0)
    side = np.where(records["stream"] == 0, device["gm.cube_rate"], device["gm.vector_rate"])
    side = np.where(loads, 1.0 / ((1.0 - missing) / side + missing / device["gm.ddr_rate"]), side)
    rate = np.where(records["pipe"] == FIX, device["gm.fix_rate"], side)
    bursts = np.maximum(device.ns("gm.burst") * records["repeats"], 1e-3)  # a row takes at least so long, however short it is
    items["cap"] = np.minimum(rate, np.maximum(items["bytes"], 1.0) / bursts)


def price(records: Records, device: Device, atomic: npt.NDArray[np.bool_], missing: Floats) -> Records:
    """Items for the scheduler, one a record, in the same order. `missing` is the share of a record's bytes that are not in L2."""
    items = np.zeros(len(records), ITEM)
    for field in ("stream", "pipe", "kind", "flag", "other"):
        items[field] = records[field]
    kind, pipe = records["kind"], records["pipe"]
    items["issue"] = np.where(kind == RUN, device.ns("scalar.instruction"), device.ns("sync.issue"))
    run = kind == RUN
    for number, cost in ((V, vector_ns), (M, mmad_ns), (MTE1, load_ns)):
        mine = run & (pipe == number)
        items["fixed"][mine] = cost(records[mine], device)
    _transfers(items, records, device, atomic, missing)
    scalar = np.where(records["gm_bytes"] > 0, device["scalar.gm_read"], device["scalar.ub_read"])
    items["fixed"] = np.where(kind == SCALAR, scalar, items["fixed"])
    items["fixed"] = np.where((kind == BARRIER) & (pipe == ALL), device["sync.drain"], items["fixed"])
    items["fixed"] = np.where(kind == SYNC_ALL, device["sync.sync_all"], items["fixed"])
    items["issue"] = np.where(kind == END, 0.0, items["issue"])
    return items
