"""Outlines in files: those that ship for calibration, and the cache of those recorded here."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from fusion.simulator import Buffer
from fusion.simulator.build import INCLUDE, cache, digest
from fusion.timeline.record import KEPT, MOST, MOST_BLOCKS, BlockKind, Outline, Traffic, outline


def save(outline: Outline, path: Path) -> None:
    """One compressed file: the records of all kinds behind each other, and the rest as JSON."""
    kinds = [
        {
            "block": k.block,
            "count": k.count,
            "records": len(k.records),
            "total": k.total,
            "traffic": [[t.name, t.nbytes, t.loaded, t.stored] for t in k.traffic],
        }
        for k in outline.kinds
    ]
    head = {
        "kernel": outline.kernel,
        "blocks": outline.blocks,
        "sampled": outline.sampled,
        "vectors": outline.vectors,
        "kinds": kinds,
        "source": outline.source,
    }
    records = np.concatenate([k.records for k in outline.kinds])
    kind_of = np.array(outline.kind_of, np.int32)
    buffer = np.concatenate([k.buffer for k in outline.kinds])
    np.savez_compressed(path, records=records, buffer=buffer, kind_of=kind_of, head=np.frombuffer(json.dumps(head).encode(), np.uint8))


@lru_cache(maxsize=64)
def load(path: Path) -> Outline:
    """What `save` wrote."""
    with np.load(path) as data:
        head = json.loads(bytes(data["head"]).decode())
        records, buffer, kind_of = data["records"], data["buffer"], data["kind_of"]
    kinds, at = list[BlockKind](), 0
    for k in head["kinds"]:
        part = slice(at, at + k["records"])
        traffic = tuple(Traffic(*t) for t in k["traffic"])
        kinds.append(BlockKind(k["block"], k["count"], records[part], buffer[part], traffic, k.get("total", k["records"])))
        at += k["records"]
    return Outline(
        head["kernel"],
        head["blocks"],
        head["vectors"],
        tuple(kinds),
        tuple(kind_of.tolist()),
        tuple(head["source"]),
        bool(head.get("sampled")),
    )


@lru_cache(maxsize=1)
def _headers() -> str:
    return digest([p.read_bytes() for p in sorted(INCLUDE.rglob("*")) if p.is_file()])


def recorded(ascendc: str, name: str, buffers: Sequence[Buffer]) -> Outline:
    """The outline of a kernel, from the cache if the same was recorded before. Kernels with index inputs are recorded each time."""
    if any(b.data is not None for b in buffers):
        return outline(ascendc, name, buffers)
    shapes = [f"{b.name} {b.dtype} {b.shape}" for b in buffers]
    key = digest([_headers(), ascendc, name, *shapes, repr((KEPT, MOST, MOST_BLOCKS))])
    path = cache() / f"outline-{key}.npz"
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=cache()) as folder:
            made = Path(folder) / "outline.npz"
            save(outline(ascendc, name, buffers), made)
            os.replace(made, path)
    return load(path)
