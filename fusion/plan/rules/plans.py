"""Rules about the kernels of a plan together."""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx

from fusion.plan.types import Plan


def every_stage_runs_once(plan: Plan) -> Iterator[tuple[str, str]]:
    runs = [s for k in plan.kernels for s in k.stages] + list(plan.host_stages)
    for s in plan.graph.stages:
        if runs.count(s.name) != 1:
            yield s.name, f"runs {runs.count(s.name)} times"
    known = {s.name for s in plan.graph.stages}
    yield from ((s, "is not a stage of the operator") for s in runs if s not in known)


def kernels_are_acyclic(plan: Plan) -> Iterator[tuple[str, str]]:
    """No kernel waits for a later one."""
    owner = {s: i for i, k in enumerate(plan.kernels) for s in k.stages} | {s: len(plan.kernels) for s in plan.host_stages}
    for u, v in plan.graph.graph.edges:
        if owner.get(u, 0) > owner.get(v, 0):
            yield v, f"runs before {u}, whose result it reads"
    quotient = nx.DiGraph((owner[u], owner[v]) for u, v in plan.graph.graph.edges if u in owner and v in owner and owner[u] != owner[v])
    if not nx.is_directed_acyclic_graph(quotient):
        yield plan.graph.name, "its kernels need each other's results in a cycle"


def host_stages_are_last(plan: Plan) -> Iterator[tuple[str, str]]:
    """The host runs only what no kernel reads."""
    for s in plan.host_stages:
        readers = [r for out in plan.graph.stage(s).writes for r in plan.graph.readers(out) if r != s]
        if readers:
            yield s, f"runs on the host, but stage {readers[0]} reads its result"
