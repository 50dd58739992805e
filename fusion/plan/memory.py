"""How many bytes a kernel's buffers take in each on-chip memory of a core."""

from __future__ import annotations

from fusion.emit.kernel import fill
from fusion.emit.program import DTYPE_BYTES, TileBuffer
from fusion.emit.ranks import ranked_row, ranks
from fusion.graph.ops import OPS
from fusion.plan.structure import Structure
from fusion.plan.types import Kernel

Usage = tuple[str, int, list[tuple[str, int]]]  # memory, bytes, buffers by falling size


def on_chip(structure: Structure, kernel: Kernel) -> list[Usage]:
    """Bytes in UB, L1 and L0C with every buffer live at once, which is an upper bound: the compiler may let some share a place."""
    buffers = list(fill(structure, kernel, 1).buffers.values())
    scratch = scratch_bytes(structure, kernel)
    if scratch:
        buffers.append(TileBuffer("tmp_ub", "ub", (scratch,), "uint8"))
    found: list[Usage] = []
    for memory in ("ub", "l1", "l0c"):
        mine = sorted(((b.name, b.nbytes) for b in buffers if b.scope == memory), key=lambda x: (-x[1], x[0]))
        found.append((memory, sum(n for _, n in mine), mine))
    return found


def scratch_bytes(structure: Structure, kernel: Kernel) -> int:
    """The compiler adds one scratch buffer as large as the largest tile that is reduced (a quarter of one that is broadcast).

    A row that is sorted takes one more, of four times its size: such rows are bounded by UB before the device's own 8160 elements.
    """
    largest = 0
    sorted_row = max((4 * DTYPE_BYTES["float32"] * ranked_row(structure.tiling, o) for _, o in structure.ops if ranks(o)), default=0)
    for stage, op in structure.ops:
        if stage.unit != "vector" or ranks(op):
            continue
        source = op.reads[0] if OPS[op.fn].form == "reduce" else op.out
        elements = 1
        for d in structure.tiling.shape(source):
            elements *= structure.tiling.tile(d)
        if OPS[op.fn].form == "reduce" and not structure.tiling.shape(op.out):
            elements *= _met(structure, op.out)  # repeated to rows first
        size = elements * structure.graph.value(source).itemsize // (2 if kernel.threads == 2 else 1)
        largest = max(largest, size if OPS[op.fn].form == "reduce" else size // 4)
    return largest + sorted_row


def _met(structure: Structure, number: str) -> int:
    """Rows of the longest tile of the kernel that a number meets."""
    rows: list[int] = []
    for _, op in structure.readers.get(number, ()):
        shape = structure.tiling.shape(op.out)
        rows.append(structure.tiling.tile(shape[0]) if shape else _met(structure, op.out))
    return max(rows, default=1)
