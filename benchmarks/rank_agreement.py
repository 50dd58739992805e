"""How well the planner's estimate ranks legal plans, against the timeline: python benchmarks/rank_agreement.py [--plans 24] [--seed 0].

gqa_sink_bwd at the measured shape has millions of legal plans; a plan's time is the sum of its kernels', so that a sample of plans tells.
Each plan of the sample is a legal partition drawn by giving every set of stages a random cost, with a number of kernels and a tiling
drawn before. Every kernel of it is emitted, lowered and scheduled.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from fusion.compare.rerank import rerank
from fusion.cost.model import estimate
from fusion.device import load
from fusion.errors import FusionError
from fusion.output.summary import plan_us, structure_of
from fusion.plan.chooser import Chooser
from fusion.plan.planner import Planned, Planner, kernel_name
from fusion.plan.realize import placed
from fusion.plan.search import Partition, best_partitions
from fusion.plan.types import Kernel, Plan
from kernels.attention_sink import gqa_sink_bwd


def plan_of(planner: Planner, chooser: Chooser, partition: Partition) -> Plan:
    """The plan whose kernels are the cheapest for each set of the partition."""
    kernels, host = list[Kernel](), list[str]()
    for number, atoms in enumerate(partition.kernels, 1):
        choice = chooser.choose(atoms)
        assert choice is not None
        kernel = placed(choice.offer.option.structure, choice.offer.option.kernel)
        kernels.append(replace(kernel, name=kernel_name(number, kernel.stages)))
        host += choice.host
    return Plan(planner.graph, chooser.tiling.tiles, tuple(kernels), tuple(host), planner.device)


def drawn(planner: Planner, wanted: int, seed: int) -> Iterator[Plan]:
    """Legal plans at random: the number of kernels goes round, the tiling is drawn."""
    rng, most = random.Random(seed), len(planner.atoms)
    for count in itertools.islice(itertools.cycle(range(2, most)), wanted * 4):
        chooser, prices = rng.choice(planner.choosers), dict[frozenset[str], float]()

        def price(atoms: frozenset[str], chooser: Chooser = chooser, prices: dict[frozenset[str], float] = prices) -> float | None:
            while chooser.cost(atoms) is not None:
                if chooser.confirm(atoms):
                    return prices.setdefault(atoms, rng.random())
            return None

        found = best_partitions(planner.parts.order, price, (count,), 1, possible=chooser.possible).best[count]
        if found:
            yield plan_of(planner, chooser, found[0])


def rank_correlation(a: list[float], b: list[float]) -> float:
    """Spearman's: the correlation of the ranks."""
    first, second = (np.argsort(np.argsort(x)) for x in (a, b))
    return float(np.corrcoef(first, second)[0, 1])


def summary(what: str, estimated: list[float], simulated: list[float], interval: float) -> str:
    """Rank correlation, mean error, and how many pairs that differ by more than the interval the estimate puts in the right order."""
    error = float(np.mean(np.abs(np.array(estimated) / np.array(simulated) - 1)))
    pairs = [(i, j) for i, j in itertools.combinations(range(len(simulated)), 2) if abs(np.log(simulated[i] / simulated[j])) > interval]
    right = sum((estimated[i] < estimated[j]) == (simulated[i] < simulated[j]) for i, j in pairs)
    return (
        f"{what}: {len(simulated)}, {min(simulated):.0f} to {max(simulated):.0f} us, rank correlation "
        f"{rank_correlation(estimated, simulated):.3f}, mean error {100 * error:.0f} %, {right} of {len(pairs)} pairs that differ by more "
        f"than {100 * interval:.0f} % in order"
    )


def main(wanted: int, seed: int) -> None:
    device, planner = load(), Planner(gqa_sink_bwd(window=128))
    gap = device["launch.gap"] / 1e3
    plans, kernels = list[tuple[float, float]](), dict[tuple[str, float], float]()
    for plan in drawn(planner, wanted, seed):
        try:
            (done,) = rerank([Planned(plan, plan_us(plan), (), 0.0)], device)
        except FusionError as error:
            print(f"left out: {error.what}", file=sys.stderr)
            continue
        plans.append((done.estimated_us, done.time.us))
        for kernel, timed in zip(done.plan.kernels, done.time.kernels, strict=True):
            kernels[" ".join(kernel.stages), estimate(structure_of(done.plan, kernel), kernel, device).us - gap] = timed.us
        print(f"{len(plans)}: {len(done.plan.kernels)} kernels, {done.estimated_us:.0f} estimated, {done.time.us:.0f}", file=sys.stderr)
        if len(plans) == wanted:
            break
    print(summary("plans", [e for e, _ in plans], [s for _, s in plans], device.interval))
    print(summary("kernels", [us for _, us in kernels], list(kernels.values()), device.interval))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--plans", type=int, default=24, help="how many plans to draw")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    main(given.plans, given.seed)
