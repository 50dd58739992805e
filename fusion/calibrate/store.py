"""Outlines in files: what calibration needs of a kernel, so that it runs without a compiler."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

import numpy as np

from fusion.timeline.record import BlockKind, Outline, Traffic

DATA = Path(__file__).parent / "data"


def save(outline: Outline, path: Path) -> None:
    """One compressed file: the records of all kinds behind each other, and the rest as JSON."""
    kinds = [
        {"block": k.block, "count": k.count, "records": len(k.records), "traffic": [[t.name, t.nbytes, t.moved] for t in k.traffic]}
        for k in outline.kinds
    ]
    head = {"kernel": outline.kernel, "blocks": outline.blocks, "vectors": outline.vectors, "kinds": kinds, "source": outline.source}
    records = np.concatenate([k.records for k in outline.kinds])
    kind_of = np.array(outline.kind_of, np.int32)
    np.savez_compressed(path, records=records, kind_of=kind_of, head=np.frombuffer(json.dumps(head).encode(), np.uint8))


@lru_cache(maxsize=64)
def load(path: Path) -> Outline:
    """What `save` wrote."""
    with np.load(path) as data:
        head = json.loads(bytes(data["head"]).decode())
        records, kind_of = data["records"], data["kind_of"]
    kinds, at = list[BlockKind](), 0
    for k in head["kinds"]:
        part = records[at : at + k["records"]]
        kinds.append(BlockKind(k["block"], k["count"], part, tuple(Traffic(*t) for t in k["traffic"])))
        at += k["records"]
    return Outline(head["kernel"], head["blocks"], head["vectors"], tuple(kinds), tuple(kind_of.tolist()), tuple(head["source"]))


def handwritten(label: str) -> Path:
    """The file of a hand-written kernel by its label, `6/dk_dq`."""
    return DATA / f"{label.replace('/', '_')}.npz"
