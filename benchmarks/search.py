"""Times the partition search with a trivial cost, and how far its bounded fallback is from the exact answer.

python benchmarks/search.py
"""

from __future__ import annotations

import random
import time
import zlib

import networkx as nx

from fusion.plan.search import Cost, Found, best_partitions

ATTENTION_BACKWARD = {
    "scores": ["probs"],
    "probs": ["dv", "ds", "dsink"],
    "delta": ["ds", "dsink"],
    "dp": ["ds"],
    "ds": ["dk", "dq"],
    "dv": ["cast_dv"],
    "dk": ["cast_dk"],
    "dq": ["cast_dq"],
    "dsink": ["cast_dsink"],
}


def cost(kernel: frozenset[str]) -> float:
    return zlib.crc32(" ".join(sorted(kernel)).encode()) % 1000 / 10 + len(kernel) ** 2


def chains(*lengths: int) -> nx.DiGraph[str]:
    return nx.DiGraph([(f"{c}_{i:02}", f"{c}_{i + 1:02}") for c, length in enumerate(lengths) for i in range(length - 1)])


def banded(size: int, reach: int, density: float) -> nx.DiGraph[str]:
    """A random DAG in which an atom needs only atoms shortly before it."""
    rng, names = random.Random(1), [f"n{i:02}" for i in range(size)]
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from((a, b) for i, a in enumerate(names) for b in names[i + 1 : i + 1 + reach] if rng.random() < density)
    return graph


def timed(name: str, graph: nx.DiGraph[str], cost: Cost, limit: int = 200_000) -> Found:
    start = time.perf_counter()
    found = best_partitions(graph, cost, range(2, len(graph) + 1), limit=limit)
    took = time.perf_counter() - start
    print(f"{name:32}{len(graph):4} atoms, all counts {took:7.3f} s  {'exact' if found.exact else 'bounded'}")
    return found


def traffic(graph: nx.DiGraph[str]) -> Cost:
    """A launch, and the edges that cross the kernel's border; at most six atoms."""
    return lambda kernel: 5.0 + sum((a in kernel) != (b in kernel) for a, b in graph.edges) if len(kernel) < 7 else None


def gap(name: str, graph: nx.DiGraph[str], cost: Cost) -> None:
    exact, bounded = timed(name, graph, cost), timed(f"{name}, limit 2000", graph, cost, limit=2000)
    gaps = [bounded.best[n][0].cost / best[0].cost - 1 for n, best in exact.best.items() if best and bounded.best[n]]
    missed = sum(bool(best) and not bounded.best[n] for n, best in exact.best.items())
    print(f"  bounded search: gap {max(gaps):.1%} at worst, {sum(gaps) / len(gaps):.1%} on average, {missed} counts missed")


def main() -> None:
    timed("attention backward", nx.DiGraph(ATTENTION_BACKWARD), cost)
    timed("attention backward, all ties", nx.DiGraph(ATTENTION_BACKWARD), lambda kernel: 1.0)
    timed("chain", chains(40), cost)
    timed("two chains", chains(20, 20), cost)
    timed("banded", banded(40, 5, 0.3), cost)
    small = banded(18, 4, 0.3)
    gap("structureless cost", small, cost)
    gap("launches and traffic", small, traffic(small))


if __name__ == "__main__":
    main()
