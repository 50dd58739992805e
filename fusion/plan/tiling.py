"""Which dims are tiled, how large tiles may be, and the counts that follow.

Tile code is two-dimensional: of every value at most two dims have a tile larger than 1. A contraction needs one such dim for each
of M, N and K; all further dims of it (heads, batches) are walked one index at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

from fusion.graph import StageGraph
from fusion.graph.ops import OPS

FRACTAL = 16  # rows and columns of a Cube fractal: tiles are multiples of it
REPEAT = 64  # fp32 elements of a Vector instruction's repeat
COMPARISONS = ("ge", "lt")  # of data: they work on whole repeats
CUBE_TILES = (64, 128)
WIDE_TILE = 256  # for rows or columns of products: fewer loads for the same work
VECTOR_TILES = (16, 32, 64, 128)
LONG_ROW = 512  # rows longer than this may come a few at a time
FEW_ROWS = (1, 2, 8)
FEW_CUBE_ROWS = (16, 32)  # the same for a dim of a contraction
FULL_CUBE = 512  # a dim of a contraction up to this size may be one tile
WHOLE_ROW = 4096  # a row of Vector work up to this size is one tile: rows are what blocks share
FULL_VECTOR = 16384  # the same where no contraction has it


def round_up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple


def _last(dims: list[str], graph: StageGraph) -> list[str]:
    order = {d.name: i for i, d in enumerate(graph.dims)}
    hinted = [d for d in dims if graph.dim(d).tiles]
    return sorted(hinted or dims, key=order.__getitem__)[-1:]


def cube_dims(graph: StageGraph) -> frozenset[str]:
    """Dims that are M, N or K of some contraction: of several candidates the last declared one, tile hints first."""
    found: set[str] = set()
    for op in (op for s in graph.stages for op in s.body if OPS[op.fn].form == "contract"):
        a, b = (graph.value(x).dims for x in op.args if isinstance(x, str))
        out = graph.value(op.out).dims
        for side in ([d for d in a if d not in b and d in out], [d for d in b if d not in a and d in out], list(op.over)):
            found.update(_last([d for d in side if graph.dim(d).size > 1] or side, graph))
    return frozenset(found)


def matrix_dims(graph: StageGraph) -> frozenset[str]:
    """All tiled dims: those of contractions, and the last two of a Vector stage that has none of them.

    A stage that only finishes what tiles were summed to (a number for each head, say) gets none: the host runs it.
    """
    found, ranked = set(cube_dims(graph)), ranked_dims(graph).keys()
    order = {d.name: i for i, d in enumerate(graph.dims)}
    for stage in graph.stages:
        given = {op.attr for op in stage.body if OPS[op.fn].form == "topk"}  # each stands where the dim that was ranked stood
        dims = graph.stage_dims(stage.name) - given
        sources = [p for r in stage.reads if (p := graph.producer(r))]
        if not dims & found and not any(graph.stage_dims(p) & (found | ranked) for p in sources):
            found.update(sorted(dims, key=lambda d: (graph.dim(d).size > 1, order[d]))[-2:])
    return frozenset(found | ranked)


@cache
def ranked_dims(graph: StageGraph) -> dict[str, str]:
    """Dims that a top-k ranks, and those that it gives instead, with its value: a whole row of each is one tile."""
    ranks = [op for s in graph.stages for op in s.body if OPS[op.fn].form == "topk"]
    return {d: op.out for op in ranks for d in (*op.over, op.attr)}


def fractal(graph: StageGraph, dim: str) -> int:
    """What tiles of a dim are multiples of: rows of a fractal are 32 bytes."""
    return 2 * FRACTAL if any(v.dtype == "int8" and dim in v.dims for v in graph.values) else FRACTAL


@cache
def whole_dims(graph: StageGraph) -> dict[str, str]:
    """Dims that must be one tile, with the value that says so: a top-k, or a sum with whose result its stage works on the dim again.

    A tile of such a dim that is smaller than the dim suits no kernel: the result is complete only after all tiles have been visited.
    """
    found = dict(ranked_dims(graph))
    for stage in (s for s in graph.stages if s.unit == "vector"):
        for i, op in enumerate(stage.body):
            over = [d for d in op.over if d != stage.scan] if OPS[op.fn].form == "reduce" else []
            late = {op.out}
            for reader in stage.body[i + 1 :] if over else ():
                if late.intersection(reader.reads):
                    late.add(reader.out)
                    found.update({d: op.out for d in over if d in graph.op_dims(reader) and d not in found})
    return found


def candidates(graph: StageGraph, dim: str, cube: bool) -> tuple[int, ...]:
    """Tile sizes that the planner may choose for a dim."""
    d = graph.dim(dim)
    if d.size == 1 and not cube and dim not in ranked_dims(graph):
        return (1,)
    compared = [graph.value(op.out).dims for s in graph.stages for op in s.body if op.fn in COMPARISONS]
    repeats = any(dim in dims for dims in compared) if cube else d.size > REPEAT or bool(compared)
    full = round_up(d.size, REPEAT if repeats else fractal(graph, dim))
    if d.tiles:
        return tuple(sorted({min(t, full) for t in d.tiles}))
    if dim in whole_dims(graph):
        return (full,)
    limit = FULL_CUBE if cube else FULL_VECTOR
    if cube and full <= 256:
        sizes = {t for t in CUBE_TILES if t < full and (t == 128 or not _contracted(graph, dim))}
        return tuple(sorted(sizes | {full} | _few_rows(graph, dim, cube, full)))
    if not cube and full <= WHOLE_ROW and not _meets_later(graph, dim):
        return (full,)
    sizes = {t for t in ((*CUBE_TILES, WIDE_TILE) if cube and _kept(graph, dim) else CUBE_TILES if cube else VECTOR_TILES) if t < full}
    return tuple(sorted(sizes | ({full} if full <= limit else set()) | _few_rows(graph, dim, cube, full)))


def _contracted(graph: StageGraph, dim: str) -> bool:
    return any(dim in op.over for s in graph.stages for op in s.body if OPS[op.fn].form == "contract")


def _kept(graph: StageGraph, dim: str) -> bool:
    """Whether some contraction has the dim in its result."""
    return any(dim in graph.value(op.out).dims for s in graph.stages for op in s.body if OPS[op.fn].form == "contract")


def _meets_later(graph: StageGraph, dim: str) -> set[str]:
    """Dims declared behind `dim` that some stage has together with it: none if its elements lie next to each other."""
    names = [d.name for d in graph.dims]
    together = {d for s in graph.stages for d in graph.stage_dims(s.name) if dim in graph.stage_dims(s.name)}
    return together & set(names[names.index(dim) + 1 :])


def _few_rows(graph: StageGraph, dim: str, cube: bool, full: int) -> set[int]:
    """Small tiles for a dim that meets long rows: of Vector work, or in a product with a dim that must be whole."""
    if not cube:
        long = any(graph.dim(d).size > LONG_ROW for d in _meets_later(graph, dim))
        return {t for t in FEW_ROWS if t < full} | {1} if long else set()
    met = {d for s in graph.stages if dim in graph.stage_dims(s.name) for d in graph.stage_dims(s.name)}
    long = any(graph.dim(d).size > CUBE_TILES[-1] for d in met.intersection(whole_dims(graph)) - {dim})
    return {t for t in FEW_CUBE_ROWS if t < full and t % fractal(graph, dim) == 0} if long else set()


@cache
def _by_vector(graph: StageGraph) -> frozenset[str]:
    """Values that some Vector stage reads or makes."""
    ops = [op for s in graph.stages if s.unit == "vector" for op in s.body]
    return frozenset(v for op in ops for v in (op.out, *op.reads)) | {c.state for c in graph.carries}


def summed_dims(graph: StageGraph, value: str) -> frozenset[str]:
    """The dims over which contractions sum a value."""
    ops = (op for s in graph.stages for op in s.body if OPS[op.fn].form == "contract" and value in op.reads)
    return frozenset(d for op in ops for d in op.over)


@dataclass(frozen=True)
class Tiling:
    """A graph with one tile size for every matrix dim; every other dim has tile 1."""

    graph: StageGraph
    tiles: tuple[tuple[str, int], ...]

    @cached_property
    def _tile(self) -> dict[str, int]:
        return dict(self.tiles)

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.graph, self.tiles))

    @cached_property
    def _trips(self) -> dict[str, int]:
        return {d.name: -(-d.size // self.tile(d.name)) for d in self.graph.dims}

    @cached_property
    def _shapes(self) -> dict[str, tuple[str, ...]]:
        order, touched = [d.name for d in self.graph.dims], _by_vector(self.graph)
        listed = {v.name: sorted(v.dims, key=order.index) if v.name in touched else v.dims for v in self.graph.values}
        for v in (v for v in self.graph.values if v.dtype == "float32" and v.name not in touched):
            summed = summed_dims(self.graph, v.name)
            listed[v.name] = sorted(v.dims, key=lambda d: d in summed)
        return {name: tuple(d for d in dims if d in self._tile) for name, dims in listed.items()}

    def tile(self, dim: str) -> int:
        return self._tile.get(dim, 1)

    def is_matrix(self, dim: str) -> bool:
        return dim in self._tile

    def trips(self, dim: str) -> int:
        """How many tiles cover the dim."""
        return self._trips[dim]

    def has_tail(self, dim: str) -> bool:
        """Whether the last tile reaches beyond the dim."""
        return self.graph.dim(dim).size % self.tile(dim) != 0

    def shape(self, value: str) -> tuple[str, ...]:
        """The matrix dims of a value: its tile has one axis for each. In order of declaration if a Vector stage reads or makes it."""
        return self._shapes[value]

    @cached_property
    def worked(self) -> frozenset[str]:
        """Values whose operation works on tiles: a number for each block goes where it is used."""
        ops = (op for s in self.graph.stages for op in s.body if op.out not in self.graph.silent)
        return frozenset(op.out for op in ops if any(map(self.is_matrix, self.graph.op_dims(op))))

    @cached_property
    def spread(self) -> tuple[str, ...]:
        """Dims that need a grid or a loop: those with more than one tile."""
        return tuple(d.name for d in self.graph.dims if self.trips(d.name) > 1)


def tilings(graph: StageGraph) -> Iterator[Tiling]:
    """All combinations of tile sizes to try, small tiles first."""
    cube = cube_dims(graph)
    dims = sorted(matrix_dims(graph), key=[d.name for d in graph.dims].index)
    for sizes in itertools.product(*(candidates(graph, d, d in cube) for d in dims)):
        yield Tiling(graph, tuple(zip(dims, sizes, strict=True)))
