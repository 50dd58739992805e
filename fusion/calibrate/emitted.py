"""The microbenchmarks in a folder, and their timelines."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from fusion.calibrate.microbench import RUNNER, Bench, benches
from fusion.errors import FusionError
from fusion.timeline.record import Outline, buffers_of
from fusion.timeline.store import recorded
from fusion.toolchain import lower


def emit(folder: Path) -> list[Path]:
    """Writes the kernels, their buffers and the script that times them. Refuses a folder that has other files."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FusionError("is not an empty folder", where=f"--emit-microbenchmarks {folder}", remedy="name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    described = [{"name": b.name, "about": b.about, "buffers": b.buffers} for b in benches()]
    texts = {f"{b.name}.py": b.source().source for b in benches()}
    texts |= {"run.py": RUNNER, "benches.json": json.dumps(described, indent=1) + "\n"}
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]


@lru_cache(maxsize=1)
def outlines() -> dict[str, Outline]:
    """The outline of every microbenchmark by label, `bench/NAME` (needs the compiler)."""
    chosen: tuple[Bench, ...] = benches()
    found: dict[str, Outline] = {}
    for bench, lowered in zip(chosen, lower([b.source() for b in chosen]), strict=True):
        if lowered.error or not lowered.ascendc:
            raise FusionError(lowered.error.message if lowered.error else "not lowered", where=f"microbenchmark {bench.name}")
        found[f"bench/{bench.name}"] = recorded(lowered.ascendc, bench.name, buffers_of(lowered))
    return found
