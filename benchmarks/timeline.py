"""Speed of the timeline and of the estimate, and how far the two agree: python benchmarks/timeline.py [--kernels N].

The agreement is measured over the planner's best plans of every count of kernels, each lowered and simulated at the measured shape.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from fusion.calibrate import measured
from fusion.compare.rerank import Ranked, rerank
from fusion.cost.model import estimate
from fusion.device import load
from fusion.output.summary import structure_of
from fusion.plan.planner import Planner
from fusion.timeline.launch import time_launch
from kernels.attention_sink import gqa_sink_bwd


def rank_correlation(a: list[float], b: list[float]) -> float:
    """Spearman's: the correlation of the ranks."""
    first, second = (np.argsort(np.argsort(x)) for x in (a, b))
    return float(np.corrcoef(first, second)[0, 1])


def speed() -> None:
    device = load()
    started, instructions = time.perf_counter(), 0
    for label in measured.labels():
        instructions += sum(len(k.schedule.start) for k in time_launch(measured.kernel(label), device).kinds if k.schedule) * 2
    took = time.perf_counter() - started
    print(
        f"schedule: {len(measured.labels())} launches in {took:.2f} s, about {instructions / took / 1e6:.2f} million instructions a second"
    )


def estimates(found: list[Ranked]) -> None:
    kernels = [(structure_of(r.plan, k), k) for r in found for k in r.plan.kernels]
    started = time.perf_counter()
    for structure, kernel in kernels:
        estimate(structure, kernel, None)
    print(f"estimate: {1e6 * (time.perf_counter() - started) / len(kernels):.0f} us a kernel, first call included")


def agreement(keep: int) -> list[Ranked]:
    graph, device = gqa_sink_bwd(window=128), load()
    found = list[Ranked]()
    for plans in Planner(graph).possible(tuple(range(1, 12)), keep).values():
        found += rerank(plans, device) if plans else []
    estimated = [r.estimated_us for r in found]
    simulated = [r.time.us for r in found]
    print(
        f"plans: {len(found)}, rank correlation {rank_correlation(estimated, simulated):.2f}, error mean {_percent(estimated, simulated)} %"
    )
    pairs = {
        (k.name, e): s for r in found for k, e, s in zip(r.time.kernels, _kernel_estimates(r), (x.us for x in r.time.kernels), strict=True)
    }
    a, b = [e for _, e in pairs], list(pairs.values())
    print(f"kernels: {len(pairs)}, rank correlation {rank_correlation(a, b):.2f}, error mean {_percent(a, b)} %")
    for r in sorted(found, key=lambda r: r.time.us):
        print(f"  {len(r.plan.kernels)} kernels, tiles {dict(r.plan.tiles)}: estimated {r.estimated_us:.0f}, simulated {r.time.us:.0f}")
    return found


def _percent(a: list[float], b: list[float]) -> int:
    return round(100 * float(np.mean(np.abs(np.array(a) / np.array(b) - 1))))


def _kernel_estimates(r: Ranked) -> list[float]:
    gap = load()["launch.gap"] / 1e3
    return [estimate(structure_of(r.plan, k), k, None).us - gap for k in r.plan.kernels]


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=int, default=3, help="plans of each count")
    speed()
    estimates(agreement(parser.parse_args().keep))
