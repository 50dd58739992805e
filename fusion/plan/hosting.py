"""What the host may run instead of a kernel: stages that only cast or scale what kernels leave for the caller."""

from __future__ import annotations

from fusion.graph import Op, StageGraph
from fusion.graph.ops import OPS


def may_run_on_host(graph: StageGraph, stage: str) -> bool:
    """A stage that casts or scales results of contractions or sums, which blocks may have to add up atomically, for the caller."""
    body = graph.stage(stage)
    plain = body.unit == "vector" and not body.scan and all(_is_plain(graph, op) for op in body.body)
    return plain and all(graph.value(o).role == "output" or not graph.readers(o) for o in body.writes) and _reads_sums(graph, stage)


def _is_plain(graph: StageGraph, op: Op) -> bool:
    """An elementwise operation with an operand as large as the result."""
    dims = {v: set(graph.value(v).dims) for v in (*op.reads, op.out)}
    return OPS[op.fn].form == "elementwise" and any(dims[r] == dims[op.out] for r in op.reads)


def _reads_sums(graph: StageGraph, stage: str) -> bool:
    sums = {op.out for s in graph.stages for op in s.body if OPS[op.fn].form in ("contract", "reduce")}
    return any(r in sums for r in graph.stage(stage).reads)
