"""The outline of a kernel: one instruction stream for every kind of block, and which kind each block is of, without the arithmetic."""

from __future__ import annotations

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
from fusion.simulator.source import parse
from fusion.simulator.trace import read

LOADS = 4  # MTE2
NOTE = 255  # a section that only tells a block's kind


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

    `buffer` is the index into `traffic` of the buffer that a record touches, or -1.
    """

    block: int
    count: int
    records: npt.NDArray[np.void]
    buffer: npt.NDArray[np.int16]
    traffic: tuple[Traffic, ...]


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
        return sum(k.count * len(k.records) for k in self.kinds)


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
    timeout: float = 120.0,
) -> Outline:
    """Issues all blocks (or those in `choose`) without arithmetic and sorts them into kinds. Index inputs must have their data."""
    kernel = parse(ascendc, name)
    values = bind(kernel, buffers, scalars or {})
    binary = build(ascendc, kernel, templates)
    offsets, size = place(buffers)
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() and os.access(shared, os.W_OK) else None) as temporary:
        folder = Path(temporary)
        arena(folder / "arena", buffers, offsets, size)
        options = Options(blocks=blocks, order=False, trace=folder / "trace")
        text = job_text(kernel, buffers, values, offsets, size, folder, options)
        (folder / "job").write_text(text + "outline\n" + "".join(f"block {b}\n" for b in choose))
        failure = execute(binary, folder / "job", timeout, None)
        if failure:
            raise FusionError(f"the timeline could not be recorded: {failure}", where=name)
        return _sorted(folder / "trace", name, kernel.vectors, buffers, offsets, ascendc)


def _sorted(trace: Path, name: str, vectors: int, buffers: Sequence[Buffer], offsets: Sequence[int], ascendc: str) -> Outline:
    streams: dict[int, list[npt.NDArray[np.void]]] = {}
    first: dict[int, int] = {}
    for section in read(trace):
        if section.stream % 256 == NOTE:
            first[section.block] = section.stream // 256
        elif len(section.records):
            streams.setdefault(section.block, []).append(section.records)
    heads = sorted(streams)
    index = {block: i for i, block in enumerate(heads)}
    counts = np.bincount([index[f] for f in first.values()], minlength=len(heads))
    kinds = tuple(_kind(b, int(counts[index[b]]), np.concatenate(streams[b]), buffers, offsets) for b in heads)
    last = max(first) + 1 if first else 0
    nearest, kind_of = 0, list[int]()
    for block in range(last):
        nearest = index[first[block]] if block in first else nearest
        kind_of.append(nearest)
    return Outline(name, last, vectors, kinds, tuple(kind_of), tuple(ascendc.splitlines()), len(first) < last)


def _kind(block: int, count: int, records: npt.NDArray[np.void], buffers: Sequence[Buffer], offsets: Sequence[int]) -> BlockKind:
    at = np.searchsorted(np.array(offsets), records["gm_offset"], side="right") - 1
    moves = (records["gm_bytes"] > 0) & (at >= 0)
    loads = moves & (records["pipe"] == LOADS)
    loaded, stored = (
        np.bincount(at[which], weights=records["gm_bytes"][which], minlength=len(buffers)) for which in (loads, moves & ~loads)
    )
    traffic = tuple(Traffic(b.name, b.nbytes, int(x), int(y)) for b, x, y in zip(buffers, loaded, stored, strict=True))
    return BlockKind(block, count, records, np.where(moves, at, -1).astype(np.int16), traffic)
