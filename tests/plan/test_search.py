"""The search against brute force over all set partitions, and what it promises beyond that."""

import math
import random
from collections.abc import Callable, Iterator

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusion.plan.search import Cost, Found, Partition, PartitionSearch, best_partitions

Kernels = list[frozenset[str]]


def dag(seed: int, size: int, density: float) -> "nx.DiGraph[str]":
    """A random DAG whose names do not follow its order."""
    rng = random.Random(seed)
    names = rng.sample([f"a{i}" for i in range(size)], size)
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from((names[i], names[j]) for i in range(size) for j in range(i + 1, size) if rng.random() < density)
    return graph


def random_cost(seed: int, illegal: float, *, ties: bool) -> Cost:
    """A random cost of each set; whole numbers up to 3 for ties."""

    def cost(kernel: frozenset[str]) -> float | None:
        rng = random.Random(f"{seed} {sorted(kernel)}")
        if rng.random() < illegal:
            return None
        return float(rng.randint(0, 3)) if ties else rng.uniform(-1, 9)

    return cost


def set_partitions(atoms: list[str]) -> Iterator[Kernels]:
    if not atoms:
        yield []
        return
    for rest in set_partitions(atoms[1:]):
        yield [frozenset({atoms[0]}), *rest]
        yield from ([*rest[:i], rest[i] | {atoms[0]}, *rest[i + 1 :]] for i in range(len(rest)))


def contracted(graph: "nx.DiGraph[str]", kernels: Kernels) -> "nx.DiGraph[int]":
    home = {atom: i for i, kernel in enumerate(kernels) for atom in kernel}
    quotient: nx.DiGraph[int] = nx.DiGraph()
    quotient.add_nodes_from(range(len(kernels)))
    quotient.add_edges_from((home[a], home[b]) for a, b in graph.edges if home[a] != home[b])
    return quotient


def brute_force(graph: "nx.DiGraph[str]", cost: Cost) -> dict[int, list[tuple[float, list[int], set[frozenset[str]]]]]:
    """All legal partitions by count, by cost and then by the first atom of each atom's kernel."""
    order = list(nx.lexicographical_topological_sort(graph))
    found: dict[int, list[tuple[float, list[int], set[frozenset[str]]]]] = {n: [] for n in range(1, len(order) + 1)}
    for kernels in set_partitions(order):
        costs = [c for k in kernels if (c := cost(k)) is not None]
        if len(costs) == len(kernels) and nx.is_directed_acyclic_graph(contracted(graph, kernels)):
            first = {atom: min(order.index(a) for a in k) for k in kernels for atom in k}
            found[len(kernels)].append((math.fsum(costs), [first[a] for a in order], set(kernels)))
    return {count: sorted(all_of_it, key=lambda f: f[:2]) for count, all_of_it in found.items()}


def assert_is_legal(graph: "nx.DiGraph[str]", cost: Cost, count: int, partition: Partition) -> None:
    """The right number of kernels, each legal, a partition, in the lexicographic topological order, with the cost of their sum."""
    kernels = list(partition.kernels)
    assert len(kernels) == count and all(kernels)
    assert sorted(a for k in kernels for a in k) == sorted(graph)
    order = list(nx.lexicographical_topological_sort(graph))
    first = [min(order.index(a) for a in k) for k in kernels]
    topological = nx.lexicographical_topological_sort(contracted(graph, kernels), key=lambda i: first[i])
    assert list(topological) == list(range(count))
    costs = [cost(k) for k in kernels]
    assert partition.cost == pytest.approx(math.fsum(c for c in costs if c is not None)) and None not in costs


def assert_matches_brute_force(graph: "nx.DiGraph[str]", cost: Cost, found: Found, keep: int) -> None:
    expected = brute_force(graph, cost)
    feasible = [count for count, partitions in expected.items() if partitions]
    assert found.exact
    for count, partitions in found.best.items():
        want = expected.get(count, [])[:keep]
        assert [set(p.kernels) for p in partitions] == [kernels for _, _, kernels in want]
        assert [p.cost for p in partitions] == pytest.approx([total for total, _, _ in want])
        for partition in partitions:
            assert_is_legal(graph, cost, count, partition)
        if not want:
            assert found.nearest[count] == tuple([c for c in feasible if c < count][-1:] + [c for c in feasible if c > count][:1])
    assert set(found.nearest) == {count for count, partitions in found.best.items() if not partitions}


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    size=st.integers(1, 7),
    density=st.floats(0, 1),
    illegal=st.sampled_from([0.0, 0.3, 0.7]),
    ties=st.booleans(),
    keep=st.sampled_from([1, 2, 5]),
)
def test_every_count_matches_brute_force(seed: int, size: int, density: float, illegal: float, ties: bool, keep: int) -> None:
    graph, cost = dag(seed, size, density), random_cost(seed, illegal, ties=ties)
    assert_matches_brute_force(graph, cost, best_partitions(graph, cost, range(size + 2), keep), keep)


@pytest.mark.parametrize("density", [0.0, 0.15, 0.3, 0.6])
@pytest.mark.parametrize("ties", [False, True])
def test_eight_atoms_match_brute_force(density: float, ties: bool) -> None:
    graph, cost = dag(8, 8, density), random_cost(8, 0.25, ties=ties)
    assert_matches_brute_force(graph, cost, best_partitions(graph, cost, range(1, 9)), 5)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(1, 7), density=st.floats(0, 0.6), room=st.integers(1, 12))
def test_possible_only_prunes(seed: int, size: int, density: float, room: int) -> None:
    """A test that is monotone changes nothing but the sets that are priced."""
    graph, price = dag(seed, size, density), random_cost(seed, 0.2, ties=False)

    def possible(kernel: frozenset[str]) -> bool:
        return sum(1 + int(a[1:]) % 4 for a in kernel) <= room

    def cost(kernel: frozenset[str]) -> float | None:
        return price(kernel) if possible(kernel) else None

    def checked(kernel: frozenset[str]) -> float | None:
        assert possible(kernel)
        return price(kernel)

    found = best_partitions(graph, checked, range(1, size + 1), possible=possible)
    assert_matches_brute_force(graph, cost, found, 5)
    assert found == best_partitions(graph, cost, range(1, size + 1))


@pytest.mark.parametrize("limit", [200_000, 30])
@pytest.mark.parametrize("ties", [False, True])
def test_insertion_order_does_not_matter(limit: int, ties: bool) -> None:
    graph, cost = dag(3, 9, 0.25), random_cost(3, 0.2, ties=ties)
    found = best_partitions(graph, cost, range(1, 10), limit=limit)
    for seed in range(5):
        rng = random.Random(seed)
        shuffled: nx.DiGraph[str] = nx.DiGraph()
        shuffled.add_nodes_from(rng.sample(sorted(graph), 9))
        shuffled.add_edges_from(rng.sample(sorted(graph.edges), len(graph.edges)))
        assert best_partitions(shuffled, cost, range(9, 0, -1), limit=limit) == found


def test_one_count_or_all_at_once() -> None:
    graph, cost = dag(5, 9, 0.3), random_cost(5, 0.2, ties=True)
    at_once = best_partitions(graph, cost, range(1, 10)).best
    assert at_once == {count: best_partitions(graph, cost, [count]).best[count] for count in range(1, 10)}


def counted(cost: Cost) -> tuple[Cost, list[frozenset[str]]]:
    calls: list[frozenset[str]] = []

    def spy(kernel: frozenset[str]) -> float | None:
        calls.append(kernel)
        return cost(kernel)

    return spy, calls


def test_each_set_is_priced_once_and_only_if_it_can_matter() -> None:
    graph = chain(20)
    cost, calls = counted(lambda kernel: 1.0)
    best_partitions(graph, cost, [2])
    assert len(calls) == len(set(calls)) == 2 * 19
    cost, calls = counted(lambda kernel: 1.0)
    best_partitions(graph, cost, range(1, 21))
    assert len(calls) == len(set(calls)) == 20 * 21 // 2


def chain(size: int) -> "nx.DiGraph[str]":
    return nx.DiGraph([(f"s{i:02}", f"s{i + 1:02}") for i in range(size - 1)])


def test_chain_of_forty_for_all_counts() -> None:
    """A chain has one partition for each choice of cuts; its cheapest is found by hand: squares want equal lengths."""
    found = best_partitions(chain(40), lambda kernel: len(kernel) ** 2, range(1, 41))
    assert found.exact and not found.nearest
    for count, partitions in found.best.items():
        length, longer = divmod(40, count)
        assert partitions[0].cost == longer * (length + 1) ** 2 + (count - longer) * length**2
        assert len(partitions) == min(5, math.comb(39, count - 1))


def independent(size: int) -> "nx.DiGraph[str]":
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(f"n{i:02}" for i in range(size))
    return graph


@pytest.mark.parametrize("seed", range(6))
def test_a_bounded_search_says_so_and_stays_legal(seed: int) -> None:
    graph, cost = dag(seed, 8, 0.2), random_cost(seed, 0.1, ties=False)
    exact, bounded = (best_partitions(graph, cost, range(1, 9), limit=limit) for limit in (200_000, 60))
    assert exact.exact and not bounded.exact
    for count, partitions in bounded.best.items():
        assert len({frozenset(p.kernels) for p in partitions}) == len(partitions)
        for partition, best in zip(partitions, exact.best[count], strict=False):
            assert_is_legal(graph, cost, count, partition)
            assert partition.cost >= best.cost - 1e-9


def test_a_graph_too_wide_is_searched_within_bounds() -> None:
    """Forty independent atoms have 2^40 ideals; equal kernels are best."""
    found = best_partitions(independent(40), lambda kernel: len(kernel) ** 2, range(2, 11))
    assert not found.exact
    assert found.best[8][0].cost == 8 * 25 and len(found.best[8]) == 5


def test_a_bounded_search_names_the_nearest_counts_it_found() -> None:
    found = best_partitions(
        independent(30), lambda kernel: 1.0 if len(kernel) < 4 else None, [2, 31], possible=lambda kernel: len(kernel) < 4
    )
    assert not found.exact and found.best == {2: [], 31: []}
    assert found.nearest == {2: (10,), 31: (30,)}


def test_costs_add_up_exactly() -> None:
    """0.1 + 0.2 + 0.3 depends on the order in floating point; here it does not, and near ties are told apart."""
    found = best_partitions(chain(10), lambda kernel: 0.1 * len(kernel) if len(kernel) < 3 else None, [5, 10])
    assert found.best[10][0].cost == math.fsum([0.1] * 10)
    assert best_partitions(chain(2), lambda kernel: 1e9 + len(kernel) * 2**-20, [2]).best[2][0].cost == 2e9 + 2**-19


def test_infinite_is_illegal_and_nan_is_an_error() -> None:
    found = best_partitions(chain(3), lambda kernel: math.inf if len(kernel) > 1 else 1.0, [1, 3])
    assert found.best[1] == [] and found.nearest == {1: (3,)} and found.best[3][0].cost == 3
    with pytest.raises(ValueError, match=r"\['s00', 's01'\] is nan"):
        best_partitions(chain(2), lambda kernel: math.nan, [1])


@pytest.mark.parametrize("graph", [independent(0), independent(1)])
def test_smallest_graphs(graph: "nx.DiGraph[str]") -> None:
    found = best_partitions(graph, lambda kernel: 1.0, [0, 1, 2])
    assert found.exact and [len(found.best[n]) for n in (0, 1, 2)] == [0, len(graph), 0]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: best_partitions(chain(3), lambda kernel: 1.0, [1], keep=0), ValueError),
        (lambda: best_partitions(nx.DiGraph([("a", "b"), ("b", "a")]), lambda kernel: 1.0, [1]), nx.NetworkXUnfeasible),
    ],
)
def test_misuse_is_refused(call: Callable[[], Found], error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), size=st.integers(2, 7), density=st.floats(0, 0.8), ties=st.booleans())
def test_asked_again_after_costs_rose(seed: int, size: int, density: float, ties: bool) -> None:
    """The kept table gives what a new search gives, whichever kernels became dearer or illegal in between."""
    graph, price, rng = dag(seed, size, density), random_cost(seed, 0.2, ties=ties), random.Random(seed)
    risen: dict[frozenset[str], float | None] = {}

    def cost(kernel: frozenset[str]) -> float | None:
        return risen[kernel] if kernel in risen else price(kernel)

    counts = range(1, size + 1)
    search = PartitionSearch(graph, cost)
    for _ in range(4):
        found = search.best(counts, 3)
        assert found == best_partitions(graph, cost, counts, 3)
        used = sorted({k for partitions in found.best.values() for p in partitions for k in p.kernels}, key=sorted)
        for kernel in rng.sample(used, min(2, len(used))):
            risen[kernel] = None if rng.random() < 0.5 else (cost(kernel) or 0.0) + rng.randint(0, 2)
            search.reprice(kernel)
