"""Small graphs and plans that the tests of passes start from, and short texts of them."""

from __future__ import annotations

from fusion.graph import Graph, StageGraph, cast, contract, exp
from fusion.passes.rebase import rebased
from fusion.plan.types import Kernel, Plan

Tiles = tuple[tuple[str, int], ...]
TILES: Tiles = (("q", 64), ("k", 64), ("d", 64))


def backward(q: int = 256, k: int = 128, d: int = 64, dtype: str = "float16") -> StageGraph:
    """P = exp(Q K^T), dV = P^T dO, dS = P dP with dP = dO V^T, dK = dS^T Q."""
    g = Graph("backward")
    g.dim("q", q)
    g.dim("k", k)
    g.dim("d", d)
    Q, K, V, dO = (g.input(n, f"{rows} d", dtype) for n, rows in (("Q", "q"), ("K", "k"), ("V", "k"), ("dO", "q")))
    with g.cube("qk"):
        s = g.let("s", contract(Q, K, over="d"))
    with g.vector("softmax"):
        p = g.let("p", exp(s * 0.125))
        p_cast = g.let("p_cast", cast(p, dtype))
    with g.cube("dv"):
        dv = g.let("dv_acc", contract(p_cast, dO, over="q"))
    with g.cube("dp"):
        dp = g.let("dp", contract(dO, V, over="d"))
    with g.vector("ds"):
        ds = g.let("ds_cast", cast(cast(p_cast, "float32") * dp, dtype))
    with g.cube("dk"):
        dk = g.let("dk_acc", contract(ds, Q, over="q"))
    with g.vector("cast_dv"):
        dV = g.let("dV", cast(dv, dtype))
    with g.vector("cast_dk"):
        dK = g.let("dK", cast(dk, dtype))
    g.output(dV)
    g.output(dK)
    return g.build()


def kernel(name: str, stages: str, grid: str = "", loops: str = "") -> Kernel:
    return Kernel(name, tuple(stages.split()), tuple(grid.split()), tuple(loops.split()))


def plan(graph: StageGraph, *kernels: Kernel, host: str = "", tiles: Tiles = TILES) -> Plan:
    """The plan with the handoffs and placements that follow from its kernels."""
    return rebased(Plan(graph, tiles, kernels, tuple(host.split())), graph, tiles)


def fused(graph: StageGraph | None = None) -> Plan:
    """All of `backward` in one kernel that loops over q."""
    return plan(graph or backward(), kernel("k1", "qk dp softmax dv ds dk cast_dv cast_dk", "k", "q"))


def stage_text(graph: StageGraph, *stages: str) -> str:
    """The lines of some stages in the graph's text."""
    lines, shown, keep = list[str](), str(graph).splitlines(), False
    for line in shown:
        if not line.startswith("  "):
            keep = line.split(" ")[-1].rstrip(":") in stages and line.endswith(":")
        lines += [line] if keep else []
    return "\n".join(lines)


def outline(p: Plan) -> str:
    """One line a kernel with its grid and loops, one a handoff."""
    lines = list[str]()
    for k in p.kernels:
        lines.append(f"{k.name}: {' '.join(k.stages)} | grid {' '.join(k.grid)} | loops {' '.join(k.loops)}")
        lines += [f"  {h.value} {h.direction} {h.name} slots {h.slots}{' free' if h.free else ''}" for h in k.handoffs]
    return "\n".join([*lines, f"host: {' '.join(p.host_stages)}"])
