"""Rules about single operations and their tiles: what has tile code, and which shapes and sizes it takes."""

from __future__ import annotations

from collections.abc import Iterator

from fusion.emit.gm import band
from fusion.emit.tile_ops import TILE_OPS, allowed_dtypes
from fusion.graph import Op
from fusion.graph.ops import OPS
from fusion.plan.sharing import fills_repeats
from fusion.plan.structure import Structure
from fusion.plan.tiling import COMPARISONS, REPEAT, fractal
from fusion.rules.memory import BLOCK_BYTES, block_rest

RANKED = ("float32", "float16", "bfloat16")  # dtypes of which float32 keeps the order


def has_tile_code(s: Structure) -> Iterator[tuple[str, str]]:
    for out, (stage, op) in s.made.items():
        if out in s.graph.slices or out in s.graph.silent:
            continue
        if TILE_OPS[op.fn] is None:
            yield stage.name, f"{out} = {op.fn} has no tile code yet"
        elif stage.unit == "vector" and (dtype := _unfit(s, op)):
            yield stage.name, f"{out} = {op.fn} of {dtype}: the Vector unit computes in float32 and float16; cast before and after"


def _unfit(s: Structure, op: Op) -> str:
    """A dtype in which an operation cannot be computed."""
    result, reads = s.graph.value(op.out).dtype, [s.graph.value(r).dtype for r in op.reads]
    return next((d for d in (result, *reads) if d not in allowed_dtypes(op.fn)), "")


def tiles_are_matrices(s: Structure) -> Iterator[tuple[str, str]]:
    """On-chip tiles have at most two tiled dims; a contraction has one of each kind, and each of its operands the sum's and another."""
    for out, (stage, op) in s.made.items():
        dims = [d for d in s.graph.op_dims(op) if s.tiling.is_matrix(d)]
        if OPS[op.fn].form == "contract":
            inner = [d for d in op.over if d in dims]
            if len(inner) != 1 or len(s.tiling.shape(out)) != 2:
                have = " ".join(dims) or "none"
                yield (
                    stage.name,
                    f"{out} needs one tiled dim each for rows, columns and the sum, it has {have}: multiply and sum it in a Vector stage",
                )
            elif odd := next((r for r in op.reads if len(s.tiling.shape(r)) != 2), ""):
                have = " ".join(s.tiling.shape(odd))
                yield (
                    stage.name,
                    f"{out} takes {odd} with the tiled dims {have}, the Cube takes matrices: multiply and sum it in a Vector stage",
                )
        elif len(dims) > 2 and not (OPS[op.fn].form == "topk" and len(s.tiling.shape(op.reads[0])) == len(dims) - 1 == 2):
            yield stage.name, f"{out} works on {len(dims)} tiled dims ({' '.join(dims)}), a tile has two"


def numbers_meet_tiles(s: Structure) -> Iterator[tuple[str, str]]:
    """A value without tiled dims is worked out as a vector where it meets a tile; alone it has no vector form.

    Only a sum whose last addition the host makes leaves the kernel, lane by lane.
    """
    for out, (stage, op) in s.made.items():
        if s.tiling.shape(out) or s.lane_dim(out) or out in s.graph.silent:
            continue
        sums = OPS[op.fn].form == "reduce"
        if sums and (s.accumulates(stage, op) or s.crosses_grid(op)):
            yield stage.name, f"{out} is a single number that a loop or blocks add up: only the host can read it"
        elif sums and not any(s.tiling.is_matrix(d) for d in op.over):
            yield stage.name, f"{out} = {op.fn} over {' '.join(op.over)} works on no tiled dim"
        elif out in s.stored or not _meets_tiles(s, out):
            dims = " ".join(s.graph.value(out).dims) or "none"
            yield stage.name, f"{out} has no tiled dim (dims: {dims}): it can only be used with tiles of its kernel"


def _meets_tiles(s: Structure, value: str) -> bool:
    """Whether everything made from a value without tiled dims ends up with a tile, inside of the kernel."""
    readers = [o.out for _, o in s.readers.get(value, ())]
    return bool(readers) and all(s.tiling.shape(r) or _meets_tiles(s, r) for r in readers)


def slices_are_loaded(s: Structure) -> Iterator[tuple[str, str]]:
    """A part of a tensor is a matter of where it is loaded from: it must be in GM, and not stored tile by tile."""
    for out in s.made:
        part = s.graph.slices.get(out)
        if part and part.source in s.made:
            maker = s.made[part.source][0].name
            yield s.made[out][0].name, f"{out} is a part of {part.source}, which stage {maker} of the same kernel makes"
        elif part and band(s.tiling, s.graph.value(part.source)):
            yield s.made[out][0].name, f"{out} is a part of {part.source}, which is stored tile by tile"


def rows_are_gathered(s: Structure) -> Iterator[tuple[str, str]]:
    """Rows are copied from GM one by one, each to a row of a tile, at the index that the index tile holds for it."""
    for out in (out for out in s.made if out in s.graph.rows and out not in s.graph.silent):
        rows, shape = s.graph.rows[out], s.tiling.shape(out)
        source, named, where = s.graph.value(rows.source), s.tiling.shape(rows.index), s.made[out][0].name
        if rows.source in s.made:
            yield where, f"{out} gathers rows of {rows.source}, which stage {s.made[rows.source][0].name} of the same kernel makes"
        elif band(s.tiling, source):
            yield where, f"{out} gathers rows of {rows.source}, which is stored tile by tile"
        elif not shape or (named and (len(shape) < 2 or shape[:1] != named or named[0] in source.dims)):
            have, index = " ".join(shape) or "none", " ".join(named) or "none"
            why = f"tiled dims {have}, of its index {index}; copied are rows: one tiled dim of the index, then one of {source.name}"
            yield where, f"{out} has the {why}"


def rows_are_ranked(s: Structure) -> Iterator[tuple[str, str]]:
    """A top-k sorts the rows of a tile one after the other: whole rows, whose elements lie next to each other, in float32."""
    for out, (stage, op) in s.made.items():
        if OPS[op.fn].form != "topk":
            continue
        source, (dim,) = s.graph.value(op.reads[0]), op.over
        if source.dtype not in RANKED:
            yield stage.name, f"{out} ranks {source.name} of {source.dtype}, the Vector unit sorts float32: cast it"
        for value, last in ((source.name, dim), (out, op.attr)):
            along, cut = "".join(s.tiling.shape(value)[-1:]), s.tiling.tile(last)
            if along != last:
                why = f"rows of {value} are along {along}: declare dim {last} after {along}" if along else f"{value} has no tiled dim"
                yield stage.name, f"{out} ranks along {dim}, but {why}"
            elif s.tiling.trips(last) > 1:
                yield stage.name, f"{out} ranks along {dim}: needs all {s.graph.dim(last).size} of {last} in one tile, which has {cut}"


def rows_are_blocks(s: Structure) -> Iterator[tuple[str, str]]:
    """A row that is copied alone, gathered or to be sorted, starts and ends at whole blocks of UB."""
    for out, (stage, op) in s.made.items():
        ranked = OPS[op.fn].form == "topk"
        alone = (op.reads[0], out) if ranked else (out,) if out in s.graph.rows and out not in s.graph.silent else ()
        for value in (v for v in alone if len(s.tiling.shape(v)) == 2):
            last = s.tiling.shape(value)[1]
            size = s.tiling.tile(last)
            if block_rest(size, 4 if ranked else s.graph.value(value).itemsize):
                yield stage.name, f"{value}: a row of {size} elements of {last} is not whole blocks of {BLOCK_BYTES} bytes"


def float32_is_not_transposed(s: Structure) -> Iterator[tuple[str, str]]:
    """The Cube's loads transpose 16-bit and 8-bit tiles only: a float32 tile has the summed dim along its rows."""
    for out, (stage, op) in s.made.items():
        for r in op.reads if OPS[op.fn].form == "contract" else ():
            shape = s.tiling.shape(r)
            if s.graph.value(r).dtype == "float32" and len(shape) == 2 and shape[1] not in op.over:
                first = f"{out} sums the float32 value {r} over {shape[0]}, the first dim of its tiles"
                yield stage.name, f"{first}: declare dim {shape[0]} after {shape[1]}, or cast it"


def tiles_are_fractals(s: Structure) -> Iterator[tuple[str, str]]:
    """The Cube works on fractals of 16 rows of 32 bytes."""
    for out, (stage, op) in s.made.items():
        for d in s.graph.op_dims(op) if OPS[op.fn].form == "contract" else ():
            if s.tiling.is_matrix(d) and s.tiling.tile(d) % fractal(s.graph, d):
                yield stage.name, f"{out}: tile {s.tiling.tile(d)} of {d} is no multiple of {fractal(s.graph, d)}"


def masks_stay_in_ub(s: Structure) -> Iterator[tuple[str, str]]:
    """The bits of a comparison live between two Vector operations of a kernel, as long as a tile."""
    for out, (stage, op) in s.made.items():
        condition = op.args[0] if op.fn == "select" else None
        if s.graph.value(out).dtype == "bool" and (out in s.stored or not s.tiling.shape(out)):
            yield (
                stage.name,
                f"{out} = {op.fn} {'would be stored' if out in s.stored else 'has no tiled dim'}; select in the same kernel and tile",
            )
        elif isinstance(condition, str) and (condition not in s.made or s.graph.value(condition).dtype != "bool"):
            yield stage.name, f"{out} selects by {condition}, which is no comparison of the same kernel"


def comparisons_fill_repeats(s: Structure) -> Iterator[tuple[str, str]]:
    """Data is compared by whole repeats of 256 bytes."""
    for out, (stage, op) in s.made.items():
        if op.fn in COMPARISONS and s.tiling.shape(out) and not fills_repeats(s.tiling, out, 1):
            tile = " x ".join(str(s.tiling.tile(d)) for d in s.tiling.shape(out))
            yield stage.name, f"{out} = {op.fn} compares a tile of {tile} elements, which is no multiple of {REPEAT}"
