"""The cheapest partitions that given steps between ideals can build: a table of the best prefixes, kept up to date as prices rise.

The table holds one number for each ideal and count of kernels: the least total with which so many kernels reach it. The best partitions
are read off it from the end: what a partition costs in front of an ideal is known exactly, so that they come out in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush

from fusion.plan.ideals import Steps

Price = Callable[[int], int | None]
"""The total of one kernel, None if it is illegal. Totals add up, and are equal for equal partitions only."""
Row = dict[int, int]
"""For each number of kernels the least total."""


class Table:
    """The best partitions into the counts asked. Only kernels that can be part of one are priced."""

    def __init__(self, steps: Steps, price: Price, everything: int, counts: Iterable[int]) -> None:
        self.price, self.everything = price, everything
        self.ideals = sorted(steps, key=int.bit_count)
        self.useful = _useful(steps, self.ideals, everything, counts)
        self.rows: dict[int, Row] = {0: {0: 0}}
        self.into: dict[int, dict[int, int]] = {}  # for each ideal the kernels that end there, and their totals
        self.ends: dict[int, list[int]] = {}  # for each kernel the ideals that it ends at
        self.starts: dict[int, list[int]] = {}  # for each ideal the ideals that a kernel leads to from there
        self.stale: set[int] = set()  # ideals with a kernel, or an ideal before it, that has another total now
        self.sorted: dict[int, dict[int, list[tuple[int, int]]]] = {}  # see _ways
        for ideal in self.ideals:
            if ideal in self.rows:
                self._extend(ideal, steps[ideal])

    def _extend(self, ideal: int, kernels: Iterable[int]) -> None:
        """Goes one kernel further from an ideal."""
        row, starts = self.rows[ideal], self.starts.setdefault(ideal, [])
        made = sum(2 << count for count in row)
        for kernel in kernels:
            end = ideal | kernel
            total = self.price(kernel) if self.useful[end] & made else None
            if total is not None:
                self.into.setdefault(end, {})[kernel] = total
                self.ends.setdefault(kernel, []).append(end)
                starts.append(end)
                self._improve(self.rows.setdefault(end, {}), row, total, self.useful[end])

    @staticmethod
    def _improve(row: Row, before: Row, total: int, useful: int) -> None:
        for count, least in before.items():
            if useful >> count + 1 & 1 and not row.get(count + 1, least + total + 1) <= least + total:
                row[count + 1] = least + total

    def reprice(self, kernel: int) -> None:
        """The price of a kernel has risen."""
        total = self.price(kernel)
        for end in self.ends.get(kernel, ()):
            if total is None:
                del self.into[end][kernel]
            else:
                self.into[end][kernel] = total
            self.stale.add(end)
        if total is None:
            self.ends.pop(kernel, None)

    def _refresh(self) -> None:
        """Works out anew what follows from kernels with new prices."""
        for ideal in (i for i in self.ideals if i in self.stale):
            self.sorted.pop(ideal, None)
            row: Row = {}
            for kernel, total in self.into[ideal].items():
                self._improve(row, self.rows[ideal ^ kernel], total, self.useful[ideal])
            if row != self.rows[ideal]:
                self.rows[ideal] = row
                self.stale.update(self.starts.get(ideal, ()))
        self.stale.clear()

    def best(self, count: int, keep: int) -> list[int]:
        """The `keep` least totals of partitions into so many kernels, rising."""
        if self.stale:
            self._refresh()
        if count not in self.rows.get(self.everything, {}):
            return []
        found: list[int] = []
        seen: set[tuple[int, int]] = set()
        heap = [(self.rows[self.everything][count], 0, self.everything, count, 0)]
        while heap and len(found) < keep:
            _, behind, ideal, left, place = heappop(heap)
            ways = self._ways(ideal, left)
            if place + 1 < len(ways):
                heappush(heap, (behind + ways[place + 1][0], behind, ideal, left, place + 1))
            kernel = ways[place][1]
            total, before = behind + self.into[ideal][kernel], ideal ^ kernel
            if (before, total) not in seen:  # the same kernels in another order give the same total
                seen.add((before, total))
                if before:
                    heappush(heap, (total + self.rows[before][left - 1], total, before, left - 1, 0))
                else:
                    found.append(total)
        return found

    def _ways(self, ideal: int, count: int) -> list[tuple[int, int]]:
        """The kernels that may end at an ideal as the last of so many, with the least total up to there, rising."""
        known = self.sorted.setdefault(ideal, {})
        if count not in known:
            rows, before = self.rows, count - 1
            pairs = ((rows[ideal ^ k], total, k) for k, total in self.into[ideal].items())
            known[count] = sorted([(row[before] + total, k) for row, total, k in pairs if before in row])
        return known[count]


def _useful(steps: Steps, ideals: Sequence[int], everything: int, counts: Iterable[int]) -> dict[int, int]:
    """For each ideal the numbers of kernels, as a bitmask, from which a count asked can still be reached."""
    useful = dict.fromkeys(ideals, 0) | {everything: sum(1 << count for count in counts)}
    for ideal in reversed(ideals):
        for kernel in steps[ideal]:
            useful[ideal] |= useful[ideal | kernel] >> 1
    return useful
