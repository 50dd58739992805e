"""The binary instruction trace of a run: one section per block and stream, one 56-byte record per instruction.

A section starts with four little-endian uint64: the magic number, block, stream (0 AIC, 1 AIV0, 2 AIV1; from bit 8 on the number of
further records that were not kept), record count. Two kinds of sections are no stream: 254 sums up the GM bytes (`moved`) of records
that were not kept, one record for each buffer and pipe; 255 (in outlines) names, from bit 8 on, the first block that issued the same.
Records stand in issue order of the stream's scalar unit. `kind` tells what a record is:

    0 run         an instruction of `pipe`: op, elements, repeats, bytes written, gm_offset/gm_bytes, m/n/k for the Cube
    1 set         SetFlag from `pipe` to pipe `other`, id `flag`
    2 wait        WaitFlag of pipe `other` for `pipe`, id `flag`
    3 barrier     PipeBarrier of `pipe`; 7 is all pipes
    4 cross set   CrossCoreSetFlag on `pipe`, mode `other`, id `flag`
    5 cross wait  CrossCoreWaitFlag, id `flag`; blocks the scalar unit
    6 scalar      a scalar read or write of GM or UB
    7 sync all    the barrier of all cores
    8 end         the stream has issued everything
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fusion.errors import FusionError

MAGIC = 0x3143415254505546
RECORD = np.dtype(
    [("stream", "u1"), ("pipe", "u1"), ("kind", "u1"), ("flag", "u1"), ("other", "u1"), ("element_bytes", "u1"), ("op", "<u2"),
     ("line", "<u4"), ("elements", "<u4"), ("repeats", "<u4"), ("bytes", "<u4"), ("gm_offset", "<u8"), ("gm_bytes", "<u4"),
     ("m", "<u4"), ("n", "<u4"), ("k", "<u4"), ("moved", "<u8")]
)  # fmt: skip
SUMMARY, NOTE = 254, 255
PIPES = ("S", "V", "M", "MTE1", "MTE2", "MTE3", "FIX", "ALL")
KINDS = ("run", "set", "wait", "barrier", "cross set", "cross wait", "scalar", "sync all", "end")


@dataclass(frozen=True)
class StreamTrace:
    """The records of one stream of one block, as a structured array with the fields of RECORD; `beyond` more were not kept.

    A `stream` of SUMMARY or NOTE is none; the first block of a NOTE is in `beyond`.
    """

    block: int
    stream: int
    records: npt.NDArray[np.void]
    beyond: int = 0


@cache
def op_names() -> tuple[str, ...]:
    """Names of the `op` field, read from the stand-in's own list."""
    text = (Path(__file__).parent / "include/sim/ops.hpp").read_text()
    body = text[text.index("#define SIM_OPS(X)") : text.index("namespace sim")]
    return tuple(re.findall(r"X\((\w+)\)", body.split(")", 1)[1]))


def read(path: Path) -> Iterator[StreamTrace]:
    """The sections of a trace file, in the order of the blocks. Refuses files that are cut or foreign."""
    data = path.read_bytes()
    at = 0
    while at < len(data):
        header = np.frombuffer(data, "<u8", 4, at) if len(data) - at >= 32 else np.zeros(4, "<u8")
        count = int(header[3])
        if int(header[0]) != MAGIC or at + 32 + count * RECORD.itemsize > len(data):
            raise FusionError(f"not an instruction trace at byte {at}", where=str(path))
        yield StreamTrace(int(header[1]), int(header[2]) % 256, np.frombuffer(data, RECORD, count, at + 32), int(header[2]) // 256)
        at += 32 + count * RECORD.itemsize
