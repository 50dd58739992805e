"""drop-copies: values that are copies of others within a stage are gone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from fusion.graph import Stage, StageGraph
from fusion.passes import GraphPass, PassResult


@dataclass(frozen=True)
class DropCopies(GraphPass):
    """Reads the source of a plain copy instead of the copy, where only its own stage reads that.

    Before: y = copy(x); z = exp(y)
    After:  z = exp(x)

    Refuses when: never. Copies that broadcast, leave the stage or are outputs stay.
    Source: x = x.
    """

    name: ClassVar[str] = "drop-copies"

    def apply(self, artefact: StageGraph) -> PassResult[StageGraph]:
        after = artefact.with_stages(_without_copies(artefact, s) for s in artefact.stages)
        return PassResult(after, after != artefact)


def _without_copies(graph: StageGraph, stage: Stage) -> Stage:
    copies = {
        op.out: op.args[0]
        for op in stage.body
        if op.fn == "copy" and not op.attr and not graph.readers(op.out) and graph.value(op.out).role == "intermediate"
    }
    carried = {c.next for c in graph.carries}
    copies = {out: source for out, source in copies.items() if out not in carried and len(stage.body) > 1}
    kept = [op for op in stage.body if op.out not in copies]
    for out, source in reversed(copies.items()):
        kept = [replace(op, args=tuple(source if a == out else a for a in op.args)) for op in kept]
    return replace(stage, body=tuple(kept))
