"""The readable text form of a plan, and its parser: `from_text(to_text(p), p.graph) == p`. The lines are described in planfile.py."""

from __future__ import annotations

from collections.abc import Iterator

from fusion.graph import StageGraph
from fusion.plan.complete import Completion
from fusion.plan.device import Limits
from fusion.plan.facts import first_like
from fusion.plan.planfile import read
from fusion.plan.types import Handoff, Kernel, Plan


def _handoff(h: Handoff) -> str:
    free = " free" if h.free else ""
    return f"  {h.kind} {h.value} as {h.name} slots {h.slots or 'each'}{free}"


def _kernel(k: Kernel) -> Iterator[str]:
    yield f"kernel {k.name}: {' '.join(k.stages)}"
    yield f"  grid {' '.join(k.grid)}".rstrip()
    yield f"  loops {' '.join(k.loops)}".rstrip()
    yield "  persistent" if k.persistent else "  persistent no"
    yield f"  threads {k.threads}"
    yield from map(_handoff, k.handoffs)
    yield from (f"  place {p.value} {p.memory}" for p in k.placements)


def to_text(plan: Plan) -> str:
    """Everything that a plan fixes, one choice a line; the graph is left to the reader."""
    lines = [f"plan {plan.graph.name} on {plan.device}", f"tiles {' '.join(f'{d}={t}' for d, t in plan.tiles)}".rstrip()]
    for k in plan.kernels:
        lines += ["", *_kernel(k)]
    lines += ["", f"host: {' '.join(plan.host_stages)}"] if plan.host_stages else []
    return "\n".join([*lines, *(f"note {n}" for n in plan.notes)]) + "\n"


def from_text(text: str, graph: StageGraph, source: str = "plan text", limits: Limits | None = None, *, check: bool = True) -> Plan:
    """Reads a plan file for an operator's graph, chooses what it leaves open, and checks every rule.

    With `check` off, kernels that break a rule are kept as written, for passes to repair. Raises FusionError with the line.
    """
    return Completion(read(text, source), first_like(graph), limits or Limits(), check).plan()
