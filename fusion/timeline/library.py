"""The scheduler's shared library: built once with g++ and kept in the cache."""

from __future__ import annotations

import ctypes
import functools
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fusion.simulator.build import FLAGS, cache, compiler, compiler_version, digest, machine, publish, run_compiler

SOURCE = Path(__file__).with_name("schedule.cpp")
STREAMS, PIPES, CAUSES = 3, 7, 10
Floats = npt.NDArray[np.float64]

ITEM = np.dtype(
    [("stream", "u1"), ("pipe", "u1"), ("kind", "u1"), ("flag", "u1"), ("other", "u1"), ("pad", "u1", 3), ("issue", "<f4"),
     ("fixed", "<f4"), ("latency", "<f4"), ("bytes", "<f4"), ("cap", "<f4")]
)  # fmt: skip


@functools.cache
def library() -> ctypes.CDLL:
    """Builds the scheduler if this source was not built before, and loads it."""
    target = cache() / f"schedule-{digest([SOURCE.read_bytes(), *FLAGS, machine(), compiler_version(compiler())])}.so"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=cache()) as folder:
            made = Path(folder) / "schedule.so"
            run_compiler([*FLAGS, "-shared", "-fPIC", str(SOURCE), "-o", str(made)], "timeline scheduler")
            publish(made, target)
    loaded = ctypes.CDLL(os.fspath(target))
    loaded.schedule.restype = ctypes.c_double
    return loaded


@dataclass(frozen=True)
class Scheduled:
    """One core's schedule. `start`, `end` (ns) and `pred` are per item; `flow_ns` is the time in which any GM transfer was under way.

    Of streams that were cut, the items that wait for something beyond the cut have a negative `start`.
    """

    ns: float
    flow_ns: float
    start: Floats
    end: Floats
    pred: npt.NDArray[np.int32]
    busy: Floats
    waits: Floats


def _pointer(array: npt.NDArray[np.generic]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def schedule(
    items: npt.NDArray[np.void], vectors: int, rates: tuple[float, float, float, float], *, beginning: bool = False
) -> Scheduled | None:
    """The items of one core on its pipes; None if it gets stuck and the items are more than the `beginning` of its streams.

    rates: GM of the Cube side, of the Vector side, of the core, and the latency of a cross-core flag.
    """
    n = len(items)
    start, end, pred = np.full(n, -1.0), np.zeros(n), np.full(n, -1, np.int32)
    busy, waits, flows = np.zeros((STREAMS, PIPES)), np.zeros((STREAMS, PIPES, CAUSES)), np.zeros(1)
    given = np.array(rates, np.float64)
    arrays = (start, end, pred, busy, waits, flows)
    items = np.ascontiguousarray(items)
    ns = library().schedule(_pointer(items), ctypes.c_int64(n), vectors, int(beginning), _pointer(given), *map(_pointer, arrays))
    return None if ns < 0 else Scheduled(float(ns), float(flows[0]), start, end, pred, busy, waits)
