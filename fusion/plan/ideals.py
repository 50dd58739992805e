"""Ideals of a DAG: the sets of atoms that hold every predecessor of their members, as bitmasks, and the kernels between two of them.

A partition whose contracted graph is acyclic is a chain of ideals from the empty one to the whole; each difference is a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate
from operator import itemgetter, or_

import networkx as nx

Steps = dict[int, list[int]]
"""For each ideal, the kernels that may come next."""
Allowed = Callable[[int], bool]


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits set, rising."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


@dataclass(frozen=True)
class Order:
    """The atoms of a DAG numbered in lexicographic topological order; their direct predecessors and successors as bitmasks."""

    atoms: tuple[str, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @classmethod
    def of(cls, graph: nx.DiGraph[str]) -> Order:
        """Numbers the graph's atoms; raises networkx.NetworkXUnfeasible when it has a cycle."""
        atoms = tuple(nx.lexicographical_topological_sort(graph))
        bit = {atom: 1 << i for i, atom in enumerate(atoms)}
        before = tuple(sum(bit[p] for p in graph.predecessors(a)) for a in atoms)
        return cls(atoms, before, tuple(sum(bit[s] for s in graph.successors(a)) for a in atoms))

    @property
    def everything(self) -> int:
        return (1 << len(self.atoms)) - 1

    @cached_property
    def _opens(self) -> list[list[tuple[int, int]]]:
        return [[(1 << s, self.before[s]) for s in bits(after)] for after in self.after]

    def names(self, mask: int) -> frozenset[str]:
        found = self._names.get(mask)
        if found is None:
            found = self._names[mask] = frozenset(self.atoms[i] for i in bits(mask))
        return found

    @cached_property
    def _names(self) -> dict[int, frozenset[str]]:
        return {}

    def mask(self, names: frozenset[str]) -> int:
        """The inverse of `names`."""
        return sum(1 << i for i, atom in enumerate(self.atoms) if atom in names)

    def ready(self, ideal: int) -> int:
        """The atoms outside whose predecessors are all inside."""
        return sum(1 << i for i in bits(self.everything & ~ideal) if not self.before[i] & ~ideal)

    def freed(self, atom: int, done: int) -> int:
        """The successors of atom whose predecessors are all done."""
        return sum(bit for bit, needs in self._opens[atom] if not needs & ~done)

    def last(self, ideal: int) -> int:
        """The atoms inside that nothing else inside needs."""
        return sum(1 << i for i in bits(ideal) if not self.after[i] & ideal)

    def needs(self, kernel: int) -> int:
        """Every direct predecessor of the kernel's atoms."""
        return reduce(or_, (self.before[i] for i in bits(kernel)), 0)

    def in_order(self, kernels: Iterable[int]) -> list[int]:
        """Kernels in topological order of their contracted graph; among the ready ones, the one with the first atom comes first."""
        waiting = sorted(kernels, key=lambda k: k & -k)
        chain: list[int] = []
        done = 0
        while waiting:
            chosen = next(k for k in waiting if not self.needs(k) & ~(done | k))
            waiting.remove(chosen)
            chain.append(chosen)
            done |= chosen
        return chain


def grow(order: Order, ideal: int, allowed: Allowed) -> Iterator[tuple[int, int]]:
    """Each kernel that can follow the ideal, once, with the direct successors of its atoms.

    Atoms are added by rising number, so that every set on the way is convex too and a set that is not allowed ends its branch.
    """
    ready = order.ready(ideal)
    if ready == order.everything & ~ideal:
        yield from _grow(order, ideal, allowed, ready & -ready, ready)
    else:
        yield from _grow(order, ideal, allowed, ready, ready)


def _grow(order: Order, ideal: int, allowed: Allowed, starts: int, ready: int) -> Iterator[tuple[int, int]]:
    stack = [(0, starts, 0)]
    while stack:
        kernel, choices, heirs = stack.pop()
        while choices:
            bit = choices & -choices
            choices ^= bit
            grown, atom = kernel | bit, bit.bit_length() - 1
            if allowed(grown):
                after = heirs | order.after[atom]
                yield grown, after
                later = choices if kernel else ready & -(bit << 1)
                stack.append((grown, later | order.freed(atom, ideal | grown), after))


def all_steps(order: Order, allowed: Allowed, limit: int) -> Steps | None:
    """Steps through which every partition into allowed kernels can be built; None when more than `limit` sets would be looked at.

    Of the orders in which the kernels of one partition can be taken, only some are followed: the kernel of the first atom left is taken
    as soon as it is ready; until then only kernels that another one waits for are taken. Every partition has such an order, since the
    kernel of the first atom is either ready or has a ready ancestor.
    """
    steps: Steps = {0: []}
    todo = [0]
    for ideal in todo:
        first = ~ideal & (ideal + 1)
        for kernel, heirs in grow(order, ideal, allowed):
            limit -= 1
            if limit < 0:
                return None
            reached = ideal | kernel
            if kernel & first or heirs & ~reached:
                steps[ideal].append(kernel)
                if reached not in steps:
                    steps[reached] = []
                    todo.append(reached)
    return steps


def nested_steps(ideals: Iterable[int], allowed: Allowed) -> Steps:
    """The allowed steps between any two of the given ideals."""
    family = sorted(ideals, key=lambda i: (i.bit_count(), i))
    return {
        small: [large ^ small for large in family[i + 1 :] if small & ~large == 0 and allowed(large ^ small)]
        for i, small in enumerate(family)
    }


def prefixes(masks: Iterable[int]) -> list[int]:
    """The ideals that a chain of kernels (or atoms) passes through, from the empty one."""
    return list(accumulate(masks, or_, initial=0))


def linear_orders(order: Order) -> list[list[int]]:
    """Four orders of the atoms, as masks: by number, by falling number, breadth first and depth first."""
    picks: tuple[Callable[[list[int]], int], ...] = (min, max, itemgetter(0), itemgetter(-1))
    return [_walk(order, pick) for pick in picks]


def _walk(order: Order, pick: Callable[[list[int]], int]) -> list[int]:
    ready, done, walk = list(bits(order.ready(0))), 0, list[int]()
    while ready:
        atom = pick(ready)
        ready.remove(atom)
        walk.append(1 << atom)
        done |= 1 << atom
        ready += bits(order.freed(atom, done))
    return walk


def around(order: Order, kernels: Sequence[int]) -> set[int]:
    """The ideals of a chain of kernels and their neighbours: an atom more, an atom less, or two independent kernels swapped."""
    chain = prefixes(kernels)
    near = set(chain)
    for ideal in chain:
        near.update(ideal | 1 << atom for atom in bits(order.ready(ideal)))
        near.update(ideal ^ 1 << atom for atom in bits(order.last(ideal)))
    swapped = (before | later for before, later in zip(chain, kernels[1:], strict=False))
    near.update(ideal for ideal in swapped if not order.needs(ideal) & ~ideal)
    return near
