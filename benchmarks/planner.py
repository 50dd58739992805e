"""Time of planning: all counts of attention backward, and a chain of 40 stages. Run by hand: python benchmarks/planner.py"""

from __future__ import annotations

import time

from fusion.graph import Graph, StageGraph, exp
from fusion.plan.planner import Planner
from kernels.attention_sink import gqa_sink_bwd


def chain(stages: int) -> StageGraph:
    """Elementwise stages on a 4096 by 1024 matrix, each reading the one before."""
    g = Graph("chain")
    g.dim("r", 4096)
    g.dim("c", 1024)
    x = g.input("x", "r c", "float32")
    for i in range(stages):
        with g.vector(f"s{i}"):
            x = g.let(f"y{i}", exp(x * 0.5) if i % 2 else x + 1.0)
    g.output(x)
    return g.build()


def timed(label: str, graph: StageGraph, counts: tuple[int, ...]) -> None:
    start = time.process_time()
    found = Planner(graph).plans(counts)
    best = ", ".join(f"{n}: {plans[0].us:.0f} us" for n, plans in found.items())
    print(f"{label}: {time.process_time() - start:.2f} s CPU ({best})")


if __name__ == "__main__":
    timed("gqa_sink_bwd, causal, 2 to 9 kernels", gqa_sink_bwd(), (9, 6, 5, 4, 3, 2))
    timed("gqa_sink_bwd, window 128, 2 to 9 kernels", gqa_sink_bwd(window=128), (9, 6, 5, 4, 3, 2))
    timed("chain of 40 stages", chain(40), (1, 2, 5, 40))
