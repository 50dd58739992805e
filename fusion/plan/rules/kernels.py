"""Rules about a kernel as a whole: its grid and loops, its Vector cores, its masks, and the memories of a core."""

from __future__ import annotations

from collections.abc import Iterator

from fusion.graph.ops import OPS
from fusion.plan.device import Limits
from fusion.plan.masks import conditions, partly_kept
from fusion.plan.structure import Structure
from fusion.plan.types import Kernel
from fusion.rules import memory


def dims_are_placed(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[tuple[str, str]]:
    """Every dim with more than one tile is in the grid or a loop, no dim in both, and only dims that the stages have."""
    have = {d for n in kernel.stages for d in s.graph.stage_dims(n)}
    for d in s.tiling.spread:
        places = kernel.grid.count(d) + kernel.loops.count(d)
        if d in have and places != 1:
            yield d, f"has {s.tiling.trips(d)} tiles and is {'neither in the grid nor in a loop' if not places else 'placed twice'}"
    yield from ((d, "is in the grid or a loop, but no stage has it") for d in (*kernel.grid, *kernel.loops) if d not in have)


def vector_cores_agree(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[tuple[str, str]]:
    """Two Vector cores share a tile by its rows; where that is impossible one core does all."""
    if kernel.threads == 2 and s.split is None:
        yield kernel.name, "its Vector stages cannot be shared by rows between two Vector cores; use threads 1"


def cube_tiles_fit(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[tuple[str, str]]:
    """A gemm double-buffers slices of 128 along the sum in L0A and L0B; one slot if the sum is no longer than that."""
    for out, (stage, op) in s.made.items():
        if OPS[op.fn].form != "contract":
            continue
        inner = next(d for d in op.over if s.tiling.is_matrix(d))
        size = s.graph.value(op.reads[0]).itemsize
        for d in s.tiling.shape(out):
            need = memory.cube_operand_bytes(s.tiling.tile(d), s.tiling.tile(inner), size)
            if memory.over(need, limits.l0a):
                yield stage.name, f"{out}: tile {s.tiling.tile(d)} of {d} takes {need} B of L0A/L0B, which has {limits.l0a} B"


def masked_tiles_are_skipped(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[tuple[str, str]]:
    """A value between kernels is kept only where its mask can hold: whoever stores or loads it visits those tiles only."""
    for v in (*s.stored, *s.loaded) if conditions(s.graph) else ():
        if s.graph.value(v).role == "intermediate":
            for c in (c for c in partly_kept(s.tiling, v) if not s.skips(c)):
                yield v, f"is kept only where {c}; a loop over {' or '.join(c.dims)} has to leave out the other tiles"


def memory_fits(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[tuple[str, str]]:
    """All buffers of a core fit its memories, the compiler's scratch for reductions included."""
    from fusion.plan.memory import on_chip

    for place, used, buffers in on_chip(s, kernel):
        limit = limits.memory(place)
        if memory.over(used, limit):
            largest = ", ".join(f"{n} {b} B" for n, b in buffers[:4])
            yield (
                kernel.name,
                f"needs {used} B of {place.upper()}, which has {limit} B (largest: {largest}); use smaller tiles or split it",
            )
