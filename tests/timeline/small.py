"""Items and outlines built by hand."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fusion.timeline.library import ITEM

RUN, SET, WAIT, BARRIER, CROSS_SET, CROSS_WAIT, SCALAR, SYNC_ALL, END = range(9)
S, V, M, MTE1, MTE2, MTE3, FIX, ALL = range(8)
FAST = (1e9, 1e9, 1e9, 0.0)


def item(kind: int, pipe: int = 0, stream: int = 1, **fields: float) -> dict[str, float]:
    return {"kind": kind, "pipe": pipe, "stream": stream, **fields}


def items(*given: dict[str, float]) -> npt.NDArray[np.void]:
    """An array of items; what is not given is 0."""
    made = np.zeros(len(given), ITEM)
    made["cap"] = 1e9
    for i, fields in enumerate(given):
        for name, value in fields.items():
            made[name][i] = value
    return made
