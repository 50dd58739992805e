"""From a statement of the generated Ascend C back to the line of the TileLang source, and the stage, that it comes from.

The compiler keeps buffer names and the order of their use, but no line numbers. A statement is matched by the buffers that it names, the
kind of call, and whether it moves or computes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from fusion.emit.program import KernelProgram

CALLS = (
    ("gemm_v0", ("T.gemm_v0",)),
    ("copy_", ("T.copy",)),
    ("atomic_add", ("T.tile.atomic_add",)),
    ("reduce_", ("T.reduce_",)),
    ("Broadcast", ("T.tile.broadcast",)),
    ("ArithProgression", ("T.tile.arith_progression",)),
    ("Fill", ("T.tile.fill",)),
    ("Compare", ("T.tile.compare",)),
    ("Select", ("T.tile.select",)),
)
_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Origin:
    """A line of a kernel's TileLang source (1-based) with the stage that it belongs to."""

    line: int
    stage: str
    text: str


@lru_cache(maxsize=64)
def _lines(kernel: KernelProgram) -> tuple[tuple[int, str, frozenset[str]], ...]:
    names = {b.name for b in kernel.buffers} | {p.name for p in kernel.params}
    found: list[tuple[int, str, frozenset[str]]] = []
    for number, text in enumerate(kernel.source.splitlines(), 1):
        if text.strip().startswith("T."):
            found.append((number, text.strip(), frozenset(w for w in _WORD.findall(text) if w in names)))
    return tuple(found)


def origin(kernel: KernelProgram, statement: str) -> Origin | None:
    """The first source line of the same kind of call that names the same buffers; None for flags and loops."""
    words = set(_WORD.findall(statement))
    wanted = next((calls for part, calls in CALLS if part in statement), ("T.tile.",))
    best: tuple[int, int, str] | None = None
    for number, text, names in _lines(kernel):
        if names and names <= words and text.startswith(wanted) and (best is None or len(names) > best[0]):
            best = (len(names), number, text)
    if best is None:
        return None
    return Origin(best[1], dict(kernel.stage_lines).get(best[1], ""), best[2])
