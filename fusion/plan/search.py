"""The cheapest partitions of a DAG's atoms into an exact number of kernels whose contracted graph is acyclic.

Dynamic programming over ideals: the best partitions of an ideal into k kernels are those of a smaller ideal into k - 1, plus one kernel.
A partition is held as one integer, its cost above its label: total = sum over kernels of (cost * 2^80 << label bits) + label(kernel),
with label(kernel) = sum over its atoms i of (first atom of the kernel) at digit i. Labels add up, and differ for different partitions,
so adding integers is exact, comparing them breaks ties, and equal ones are the same partition reached through another chain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import networkx as nx

from fusion.plan.ideals import Order, Steps, all_steps, around, bits, linear_orders, nested_steps, prefixes
from fusion.plan.table import Table

Cost = Callable[[frozenset[str]], float | None]
Possible = Callable[[frozenset[str]], bool]
Totals = dict[int, list[int]]
"""For each number of kernels the totals of the best partitions, rising."""

FRACTION = 80


@dataclass(frozen=True)
class Partition:
    """Kernels in the lexicographic topological order of their contracted graph, and the sum of their costs."""

    cost: float
    kernels: tuple[frozenset[str], ...]


@dataclass(frozen=True)
class Found:
    """What a search found: the best partitions of each count asked, cheapest first.

    exact: nothing cheaper exists, and a count with no partition has none. Otherwise the search was bounded: the partitions are legal, but
    cheaper ones may exist, by an unknown margin, and a count with none may have one.
    nearest: for each count asked that has no partition, the nearest counts below and above that have one.
    """

    best: dict[int, list[Partition]]
    exact: bool
    nearest: dict[int, tuple[int, ...]]


@dataclass(frozen=True)
class _Prices:
    """The integer price of each kernel, None if illegal; every set of atoms is asked about once."""

    order: Order
    cost: Cost
    known: dict[int, int | None] = field(default_factory=dict[int, int | None])
    decoded: dict[int, Partition] = field(default_factory=dict[int, Partition])

    @cached_property
    def digit(self) -> int:
        return max(1, (len(self.order.atoms) - 1).bit_length())

    def __call__(self, kernel: int) -> int | None:
        if kernel not in self.known:
            self.known[kernel] = self._price(kernel)
        return self.known[kernel]

    def _price(self, kernel: int) -> int | None:
        names = self.order.names(kernel)
        cost = self.cost(names)
        if cost is None or cost == math.inf:
            return None
        if not math.isfinite(cost):
            raise ValueError(f"the cost of {sorted(names)} is {cost}, need a finite number, or None for an illegal kernel")
        return (int(math.ldexp(cost, FRACTION)) << self.digit * len(self.order.atoms)) + self._label(kernel)

    def _label(self, kernel: int) -> int:
        first = (kernel & -kernel).bit_length() - 1
        return first * sum(map(self._places.__getitem__, bits(kernel)))

    @cached_property
    def _places(self) -> list[int]:
        """What a 1 stands for in the label's digit of each atom."""
        return [1 << self.digit * atom for atom in reversed(range(len(self.order.atoms)))]

    def kernels(self, total: int) -> list[int]:
        """The kernels of a partition, read off the label in its total, in order."""
        groups: dict[int, int] = {}
        for atom in range(len(self.order.atoms)):
            first = total >> self.digit * (len(self.order.atoms) - 1 - atom) & ((1 << self.digit) - 1)
            groups[first] = groups.get(first, 0) | 1 << atom
        return self.order.in_order(groups.values())

    def partition(self, total: int) -> Partition:
        """What a total stands for."""
        if total not in self.decoded:
            cost = (total >> self.digit * len(self.order.atoms)) / (1 << FRACTION)
            self.decoded[total] = Partition(cost, tuple(self.order.names(kernel) for kernel in self.kernels(total)))
        return self.decoded[total]


def _totals(steps: Steps, prices: _Prices, counts: Iterable[int], keep: int) -> Totals:
    """The `keep` best partitions that the steps can build, for each count."""
    counts = sorted(counts)
    table = Table(steps, prices, prices.order.everything, counts)
    return {count: table.best(count, keep) for count in counts}


def _union(one: Totals, other: Totals, keep: int) -> Totals:
    """The `keep` best of both, for each count of either."""
    return {count: sorted({*one.get(count, []), *other.get(count, [])})[:keep] for count in sorted({*one, *other})}


@dataclass(frozen=True)
class _Search:
    """One graph's search; steps are None where its ideals are too many, and the search is bounded."""

    prices: _Prices
    possible: Possible | None
    limit: int
    known: dict[int, bool] = field(default_factory=dict[int, bool])

    def allowed(self, kernel: int) -> bool:
        if self.possible is None:
            return True
        if kernel not in self.known:
            self.known[kernel] = self.possible(self.prices.order.names(kernel))
        return self.known[kernel]

    def solve(self, steps: Steps | None, counts: Sequence[int], keep: int) -> Totals:
        """The best totals of each count; a bounded search that misses a count tries again with all counts, and adds them."""
        if steps is not None:
            return _totals(steps, self.prices, counts, keep)
        found = self._bounded(counts, keep)
        every = range(1, len(self.prices.order.atoms) + 1)
        return found if all(found.values()) else _union(found, self._bounded(every, keep), keep)

    def _bounded(self, counts: Sequence[int], keep: int) -> Totals:
        """The best of several corridors of ideals: along a few linear orders, then around the best partitions until none gets better."""
        pool = _totals(nested_steps(self._seed(), self.allowed), self.prices, counts, keep)
        budget, tried = self.limit, set[int]()
        while fresh := [totals[0] for totals in pool.values() if totals and totals[0] not in tried]:
            for head in fresh:
                tried.add(head)
                family = around(self.prices.order, self.prices.kernels(head))
                if (work := len(family) ** 2 // 2) <= budget:
                    budget -= work
                    found = _totals(nested_steps(family, self.allowed), self.prices, counts, keep)
                    pool = _union(pool, found, keep)
        return pool

    def _seed(self) -> set[int]:
        first, *others = linear_orders(self.prices.order)
        family = set(prefixes(first))
        for other in others:
            if len(wider := family | set(prefixes(other))) ** 2 // 2 <= self.limit:
                family = wider
        return family

    def nearest(self, steps: Steps | None, count: int, has: dict[int, bool]) -> tuple[int, ...]:
        """The nearest counts below and above that have a partition; `has` remembers which counts were tried."""
        size = len(self.prices.order.atoms)
        below, above = range(min(count - 1, size), 0, -1), range(max(count + 1, 1), size + 1)
        return tuple(c for side in (below, above) for c in self._first(steps, side, has))

    def _first(self, steps: Steps | None, side: Iterable[int], has: dict[int, bool]) -> list[int]:
        for count in side:
            if count not in has:
                has[count] = bool(self.solve(steps, [count], 1)[count])
            if has[count]:
                return [count]
        return []


class PartitionSearch:
    """A search that can be asked again after some costs have risen: only those are asked for anew (see best_partitions)."""

    def __init__(
        self,
        graph: nx.DiGraph[str],
        cost: Cost,
        possible: Possible | None = None,
        limit: int = 200_000,
        like: PartitionSearch | None = None,
    ) -> None:
        """`like` is a search of the same graph with the same `possible` and `limit`: its enumeration of kernels is taken over."""
        order = like._search.prices.order if like else Order.of(graph)
        prices = _Prices(order, cost)
        self._search = replace(like._search, prices=prices) if like else _Search(prices, possible, limit)
        self._steps = like._steps if like else all_steps(order, self._search.allowed, limit)
        self._tables: dict[tuple[int, ...], Table] = {}

    def _table(self, steps: Steps, counts: tuple[int, ...]) -> Table:
        if counts not in self._tables:
            prices = self._search.prices
            self._tables[counts] = Table(steps, prices, prices.order.everything, counts)
        return self._tables[counts]

    def reprice(self, atoms: frozenset[str]) -> None:
        """The cost of this kernel has risen."""
        prices = self._search.prices
        kernel = prices.order.mask(atoms)
        prices.known.pop(kernel, None)
        for table in self._tables.values():
            table.reprice(kernel)

    def best(self, counts: Iterable[int], keep: int, *, near: bool = True) -> Found:
        """As best_partitions, with the costs of now; without `near` no nearest counts are looked for."""
        if keep < 1:
            raise ValueError(f"keep is {keep}, need at least 1")
        search, steps = self._search, self._steps
        asked = sorted(set(counts))
        within = [count for count in asked if 1 <= count <= len(search.prices.order.atoms)]
        totals = {count: list[int]() for count in asked}
        if steps is None:
            totals |= search.solve(steps, within, keep)
        else:
            table = self._table(steps, tuple(within))
            totals |= {count: table.best(count, keep) for count in within}
        has = {count: bool(found) for count, found in totals.items()}
        nearest = {count: search.nearest(steps, count, has) for count in asked if near and not has[count]}
        return Found({count: [search.prices.partition(t) for t in totals[count]] for count in asked}, steps is not None, nearest)


def best_partitions(
    graph: nx.DiGraph[str],
    cost: Cost,
    counts: Iterable[int],
    keep: int = 5,
    *,
    possible: Possible | None = None,
    limit: int = 200_000,
) -> Found:
    """The `keep` cheapest partitions of the graph's atoms into exactly `count` kernels, for every count asked.

    Guarantee, when the result is `exact`: of all partitions into `count` non-empty legal kernels (connected or not) with an acyclic
    contracted graph, no other one comes before those returned, in order of total cost and then of label (atom by atom in lexicographic
    topological order, the one that joins the earlier kernel). Costs are added exactly, to 2^-80. Nothing depends on the order in which
    the graph was built.

    cost: of one kernel, None or infinite if illegal; may be negative; called once at most for a set, and only for sets that can be part
    of a partition into a count asked, as far as `possible` and the costs before it tell.
    possible: a cheap test; where it is False for a kernel, it and every convex set of atoms that holds it are illegal.
    limit: of sets of atoms to look at in all. A graph too wide for it gets a bounded search of about that effort instead: the same
    programming over corridors of ideals, first along a few linear orders, then around the best partitions; the result is not `exact`.
    """
    return PartitionSearch(graph, cost, possible, limit).best(counts, keep)
