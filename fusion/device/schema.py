"""The keys of a device file, the kind of each number, and the units that each kind may be given in."""

from __future__ import annotations

from collections.abc import Mapping

# kind -> unit -> factor to the base unit (bytes, nanoseconds, bytes a nanosecond, cycles, MHz, plain numbers)
UNITS: Mapping[str, Mapping[str, float]] = {
    "count": {"1": 1.0},
    "bytes": {"B": 1.0, "KB": 1024.0, "MB": 1024.0**2, "GB": 1024.0**3},
    "time": {"ns": 1.0, "us": 1e3, "ms": 1e6},
    "rate": {"GB/s": 1.0, "TB/s": 1e3, "GiB/s": 1.073741824, "B/ns": 1.0},
    "cycles": {"cycles": 1.0},
    "per cycle": {"1/cycle": 1.0, "B/cycle": 1.0},
    "clock": {"MHz": 1.0, "GHz": 1e3},
}

KEYS: Mapping[str, str] = {
    "cores.cube": "count",
    "cores.vector_per_cube": "count",
    "cores.clock": "clock",
    **{f"memory.{m}": "bytes" for m in ("ub", "l1", "l0a", "l0b", "l0c", "l2", "hbm")},
    **{f"launch.{k}": "time" for k in ("task", "gap", "host_sync", "block_start")},
    **{f"gm.{k}": "time" for k in ("latency", "store_latency")},
    **{f"gm.{k}": "rate" for k in ("cube_rate", "vector_rate", "fix_rate", "ddr_rate", "l2_rate", "hbm_rate")},
    "gm.atomic_factor": "count",
    "gm.burst": "cycles",
    "sync.cross_flags": "count",
    "sync.flag_depth": "count",
    "sync.cross_latency": "time",
    "sync.drain": "time",
    "sync.issue": "cycles",
    "sync.sync_all": "time",
    "cube.macs": "per cycle",
    "cube.int8_speedup": "count",
    "cube.fp32_slowdown": "count",
    "cube.start": "cycles",
    "cube.load_start": "cycles",
    **{f"cube.{k}": "per cycle" for k in ("l0a_rate", "l0b_rate", "l0c_rate")},
    "vector.scale": "count",
    "vector.start": "cycles",
    "scalar.instruction": "cycles",
    "scalar.ub_read": "time",
    "scalar.gm_read": "time",
}

RATES = ("default", "binary", "scalar", "exp", "div", "cast", "select", "gather", "reduce_max", "reduce_sum", "broadcast", "brcb",
         "progression", "sort")  # fmt: skip
RATE_FIELDS = ("half", "float", "start")
ALL_KEYS: Mapping[str, str] = {**KEYS, **{f"rate.{r}.{f}": "cycles" for r in RATES for f in RATE_FIELDS}}
