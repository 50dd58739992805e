"""The outline of a kernel: one instruction stream for every kind of block, and which kind each block is of, without the arithmetic."""

from __future__ import annotations

import itertools
import json
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fusion.errors import FusionError
from fusion.simulator import Buffer
from fusion.simulator.buffers import encode, place
from fusion.simulator.build import build
from fusion.simulator.run import Options, bind, execute, job_text
from fusion.simulator.source import Kernel, parse
from fusion.simulator.trace import NOTE, SUMMARY, StreamTrace, read
from fusion.toolchain.model import Lowered

LOADS = 4  # MTE2
KEPT = 100_000  # records of a stream that are kept; of longer ones the rest is counted, and taken to go on alike
MOST = 40_000_000  # instructions to issue for one launch: beyond, only some of its blocks are looked at
MOST_BLOCKS = 4_096
GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Traffic:
    """Bytes of one buffer that a block loads and stores, and the buffer's size."""

    name: str
    nbytes: int
    loaded: int
    stored: int

    @property
    def moved(self) -> int:
        return self.loaded + self.stored


@dataclass(frozen=True, eq=False)
class BlockKind:
    """Blocks that issue the same instructions: the streams of the first of them, how many they are, and what they move.

    `buffer` is the index into `traffic` of the buffer that a record touches, or -1. `total` counts the records with those that were not
    kept; `traffic` is of all of them.
    """

    block: int
    count: int
    records: npt.NDArray[np.void]
    buffer: npt.NDArray[np.int16]
    traffic: tuple[Traffic, ...]
    total: int

    @property
    def cut(self) -> bool:
        return self.total > len(self.records)

    @property
    def more(self) -> float:
        """All records over those kept."""
        return self.total / len(self.records)


@dataclass(frozen=True, eq=False)
class Outline:
    """All kinds of blocks of one launch, and the kind (index) of every block. `sampled` if not every block was looked at."""

    kernel: str
    blocks: int
    vectors: int
    kinds: tuple[BlockKind, ...]
    kind_of: tuple[int, ...]
    source: tuple[str, ...]
    sampled: bool = False

    @property
    def instructions(self) -> int:
        return sum(k.count * k.total for k in self.kinds)

    @property
    def extrapolated(self) -> str:
        """How much of the launch was not looked at; empty if all was."""
        parts = list[str]()
        if self.sampled:
            parts.append(f"{sum(k.count for k in self.kinds):,} of {self.blocks:,} blocks")
        if any(k.cut for k in self.kinds):
            kept = sum(k.count * len(k.records) for k in self.kinds)
            parts.append(f"the first {100 * kept / self.instructions:.0f} % of each block's instructions")
        return " and ".join(parts)


def buffers_of(lowered: Lowered) -> list[Buffer]:
    """The GM buffers of a kernel without data, which its instruction stream does not depend on; all its sizes must be numbers."""
    return [Buffer(p.name, p.dtype, tuple(int(n) for n in p.shape), role="out") for p in lowered.params if p.role != "scalar"]


def arena(path: Path, buffers: Sequence[Buffer], offsets: Sequence[int], size: int) -> None:
    """A sparse file: only what has data (and is an index or small) takes space."""
    with path.open("wb") as file:
        file.truncate(size)
        for buffer, at in zip(buffers, offsets, strict=True):
            if buffer.data is not None and ("int" in buffer.dtype or buffer.nbytes <= 1 << 20):
                file.seek(at)
                file.write(encode(buffer).tobytes())


def outline(
    ascendc: str,
    name: str,
    buffers: Sequence[Buffer],
    scalars: Mapping[str, int | float] | None = None,
    *,
    blocks: int | None = None,
    choose: Sequence[int] = (),
    templates: Path | None = None,
    kept: int = KEPT,
    timeout: float = 300.0,
) -> Outline:
    """Issues the blocks in `choose` without arithmetic and sorts them into kinds. Index inputs must have their data.

    If `choose` is empty, these are all blocks, or evenly spaced ones if all would issue more than MOST instructions.
    """
    kernel = parse(ascendc, name)
    run = _Run(kernel, buffers, bind(kernel, buffers, scalars or {}), build(ascendc, kernel, templates), blocks, timeout)
    if not choose:
        choose = run.spread()
    return run.outline(ascendc, [f"kept {kept}", *(f"block {b}" for b in choose)])


def spread(blocks: int, instructions: int) -> tuple[int, ...]:
    """Which blocks to look at if each issues so many instructions: all (empty), or both ends and some between them.

    Steps of the golden ratio spread the latter evenly without a period: blocks differ by their place in a row of tiles.
    """
    most = min(MOST_BLOCKS, max(2, MOST // max(1, instructions)))
    if blocks <= most:
        return ()
    chosen, steps = {0, blocks - 1}, itertools.count(1)
    while len(chosen) < most:
        chosen.add(int(next(steps) * GOLDEN % 1.0 * blocks))
    return tuple(sorted(chosen))


@dataclass(frozen=True)
class _Run:
    """A built kernel with its arguments, to be issued block by block."""

    kernel: Kernel
    buffers: Sequence[Buffer]
    values: Sequence[str]
    binary: Path
    blocks: int | None
    timeout: float

    def spread(self) -> tuple[int, ...]:
        sections, blocks = self._issued(["kept 1", "probe"])
        return spread(blocks, sum(len(s.records) + s.beyond for s in sections if s.stream < SUMMARY))

    def outline(self, ascendc: str, lines: Sequence[str]) -> Outline:
        sections, blocks = self._issued(lines)
        return _sorted(sections, self.kernel, blocks, self.buffers, place(self.buffers)[0], ascendc)

    def _issued(self, lines: Sequence[str]) -> tuple[list[StreamTrace], int]:
        """The sections of the trace, and how many blocks the launch has."""
        offsets, size = place(self.buffers)
        shared = Path("/dev/shm")
        with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() and os.access(shared, os.W_OK) else None) as temporary:
            folder = Path(temporary)
            arena(folder / "arena", self.buffers, offsets, size)
            options = Options(blocks=self.blocks, order=False, trace=folder / "trace")
            text = job_text(self.kernel, self.buffers, self.values, offsets, size, folder, options)
            (folder / "job").write_text(text + "outline\n" + "".join(f"{line}\n" for line in lines))
            failure = execute(self.binary, folder / "job", self.timeout, None)
            if failure:
                raise FusionError(f"the timeline could not be recorded: {failure}", where=self.kernel.name)
            head, *_ = (folder / "result").read_text().splitlines()  # findings of an outline mean nothing: it computes nothing
            return list(read(folder / "trace")), int(json.loads(head)["blocks"])


def _sorted(
    sections: Sequence[StreamTrace], kernel: Kernel, blocks: int, buffers: Sequence[Buffer], offsets: Sequence[int], ascendc: str
) -> Outline:
    streams: dict[int, list[StreamTrace]] = {}
    first: dict[int, int] = {}
    for section in sections:
        if section.stream == NOTE:
            first[section.block] = section.beyond
        elif len(section.records):
            streams.setdefault(section.block, []).append(section)
    heads = sorted(streams)
    index = {block: i for i, block in enumerate(heads)}
    counts = np.bincount([index[f] for f in first.values()], minlength=len(heads))
    kinds = tuple(_kind(b, int(counts[index[b]]), streams[b], buffers, offsets) for b in heads)
    nearest, kind_of = 0, list[int]()
    for block in range(blocks):
        nearest = index[first[block]] if block in first else nearest
        kind_of.append(nearest)
    return Outline(kernel.name, blocks, kernel.vectors, kinds, tuple(kind_of), tuple(ascendc.splitlines()), len(first) < blocks)


def _kind(block: int, number: int, sections: Sequence[StreamTrace], buffers: Sequence[Buffer], offsets: Sequence[int]) -> BlockKind:
    kept = [s for s in sections if s.stream != SUMMARY]
    records = np.concatenate([s.records for s in kept])
    at = _buffer(records["gm_offset"], offsets)
    at[records["gm_bytes"] == 0] = -1
    rest = np.concatenate([s.records for s in sections if s.stream == SUMMARY] or [records[:0]])
    where, nbytes = (np.concatenate(pair) for pair in ((at, _buffer(rest["gm_offset"], offsets)), (records["gm_bytes"], rest["moved"])))
    loads = np.concatenate([records["pipe"], rest["pipe"]]) == LOADS
    loaded, stored = (
        np.bincount(where[which], weights=nbytes[which], minlength=len(buffers)).tolist()
        for which in ((where >= 0) & loads, (where >= 0) & ~loads)
    )
    traffic = tuple(Traffic(b.name, b.nbytes, int(x), int(y)) for b, x, y in zip(buffers, loaded, stored, strict=True))
    return BlockKind(block, number, records, at.astype(np.int16), traffic, sum(len(s.records) + s.beyond for s in kept))


def _buffer(at: npt.NDArray[np.uint64], offsets: Sequence[int]) -> npt.NDArray[np.int64]:
    """The buffer that each byte of GM is in; -1 before the first."""
    return np.searchsorted(np.array(offsets), at, side="right") - 1
