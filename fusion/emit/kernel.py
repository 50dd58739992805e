"""One kernel of a plan as TileLang-Ascend Developer-mode source."""

from __future__ import annotations

import math

from fusion.emit.builder import LEVELS, KernelBuilder
from fusion.emit.cube import CubeEmitter
from fusion.emit.expr import tile_limits
from fusion.emit.layout import ambiguous, tidy
from fusion.emit.program import KernelProgram, Line, TileBuffer
from fusion.emit.vector import VectorEmitter
from fusion.plan.masks import tile_range
from fusion.plan.structure import Structure
from fusion.plan.tiling import Tiling
from fusion.plan.types import Kernel

HEADER = """import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}
"""


def emit_kernel(tiling: Tiling, kernel: Kernel, cores: int) -> KernelProgram:
    """Source, parameters and buffers of a kernel. `cores` bounds the blocks of a persistent one."""
    structure = Structure(tiling, kernel.stages, kernel.grid, kernel.loops)
    builder = fill(structure, kernel, cores)
    body = _assemble(builder)
    text, marks = list[str](), list[tuple[int, str]]()
    for line in body:
        for part in tidy(line.text):
            text.append(part)
            if line.stage:
                marks.append((len(text), line.stage))
    params, buffers = tuple(builder.params.values()), tuple(builder.buffers.values())
    return KernelProgram(kernel.name, "\n".join(text) + "\n", params, buffers, builder.blocks, tuple(marks))


def fill(structure: Structure, kernel: Kernel, cores: int) -> KernelBuilder:
    """All operations of a kernel written into the three levels."""
    builder = KernelBuilder(structure, kernel, cores)
    vector, cube = VectorEmitter(builder), CubeEmitter(builder)
    ordered = sorted(structure.ops, key=lambda pair: LEVELS.index(structure.levels[pair[1].out]))
    live = [(s, o) for s, o in ordered if o.out not in structure.absorbed]
    for position, (_, op) in enumerate(live):
        rows = structure.graph.rows.get(op.out)
        for r in (*op.reads, *((rows.index,) if rows else ())):
            vector.ub.last_use[r] = position
    at_end = {n: vector.ub.last_use.get(n, -1) for n in structure.nexts}
    vector.ub.last_use.update(dict.fromkeys(structure.nexts, len(live)))  # until the states have taken them over
    opened = closed = False
    for position, (stage, op) in enumerate(live):
        level = structure.levels[op.out]
        if structure.states and not opened and stage.scan:
            vector.states.open()
            opened = True
        leaves = level == "epilogue" or (not stage.scan and any(r in structure.nexts for r in op.reads))
        if opened and not closed and leaves and structure.loops:
            vector.states.close()
            vector.ub.last_use.update(at_end)
            closed = True
        if stage.unit == "cube":
            cube.emit(stage, op, level)
        else:
            vector.emit(stage, op, level, position)
    if opened and not closed and structure.loops:
        vector.states.close()
    if builder.closing:
        builder.lines["body"] += [Line("# wait until the tiles of this iteration have been read", ""), *builder.closing]
    return builder


def _assemble(b: KernelBuilder) -> list[Line]:
    graph, kernel = b.tiling.graph, b.kernel
    uses_vid = any("vid" in line.text for level in LEVELS for line in b.lines[level])
    names = "cid, vid" if uses_vid else "cid, _"
    if kernel.threads == 1:
        names = "cid"
    constants = _constants(b)
    plain = [*ambiguous(b.params), f'"""{kernel.name}: {", ".join(kernel.stages)} of {graph.name}."""', "", *HEADER.splitlines(), "", ""]
    plain += ["@tilelang.jit(pass_configs=pass_configs)", f"def {kernel.name}():", *constants, *([""] if constants else [])]
    plain += ["    @T.prim_func", "    def main(", *_signature(b), "    ):"]
    threads = ", threads=1" if kernel.threads == 1 else ""
    unused = (
        f"  # noqa: {'F841' if kernel.threads == 1 else 'RUF059'}"
        if b.tasks == 1 and not any("cid" in x.text for v in LEVELS for x in b.lines[v])
        else ""
    )
    plain += [f"        with T.Kernel({b.blocks}{threads}, is_npu=True) as ({names}):{unused}"]
    lines = [Line(t, "") for t in plain]
    pad = " " * 12
    lines += [Line(f"{pad}{buffer}", "") for buffer in _allocations(b)]
    if kernel.persistent and b.tasks > b.blocks:
        lines.append(Line(f"{pad}for round_i in T.serial({_rounds(b)}):", ""))
        pad += "    "
        lines.append(Line(f"{pad}task = round_i * {b.blocks} + cid", ""))
    lines += [Line(f"{pad}{t}", "") for t in _decode(b)]
    lines += [Line(pad + x.text, x.stage) for x in b.lines["prologue"]]
    inner = pad
    for text in _loops(b):
        lines.append(Line(inner + text, ""))
        if text.startswith("for "):
            inner += "    "
    lines += [Line(inner + x.text, x.stage) for x in b.lines["body"]]
    lines += [Line(pad + x.text, x.stage) for x in b.lines["epilogue"]]
    lines += [Line("", ""), Line("    return main", "")]
    return lines


def _rounds(b: KernelBuilder) -> str:
    """Tasks of a persistent block, without a division: the compiler turns (n - cid) // m into one that rounds towards zero."""
    whole, rest = divmod(b.tasks, b.blocks)
    return str(whole) if not rest else f"{whole} + T.if_then_else(cid < {rest}, 1, 0)"


def _constants(b: KernelBuilder) -> list[str]:
    used = " ".join(x.text for level in LEVELS for x in b.lines[level])
    return [f"    block_{d} = {t}" for d, t in b.tiling.tiles if f"block_{d}" in used]


def _signature(b: KernelBuilder) -> list[str]:
    return [f'        {p.name}: T.Tensor({p.shape!r}, "{p.dtype}"),' for p in b.params.values()]


def _allocations(b: KernelBuilder) -> list[str]:
    return [f'{x.name} = T.{_allocator(x)}({x.shape!r}, "{x.dtype}")' for x in sorted(b.buffers.values(), key=lambda x: x.scope)]


def _allocator(buffer: TileBuffer) -> str:
    """The compiler infers L1 or UB from how a shared buffer is used; one that no gemm reads must be told."""
    if buffer.name.endswith("_free_l1"):
        return "alloc_L1"
    return "alloc_fragment" if buffer.scope == "l0c" else "alloc_shared"


def _decode(b: KernelBuilder) -> list[str]:
    """The tile index of every grid dim from the task number, last dim fastest."""
    task = "task" if b.kernel.persistent and b.tasks > b.blocks else "cid"
    lines, inner = list[str](), 1
    trips = [b.tiling.trips(d) for d in b.kernel.grid]
    for i in reversed(range(len(trips))):
        at = task if inner == 1 else f"{task} // {inner}"
        outermost = inner * trips[i] == math.prod(trips)
        lines.append(f"{b.kernel.grid[i]}_i = {at if outermost else f'{at} % {trips[i]}'}")
        inner *= trips[i]
    return list(reversed(lines))


def _loops(b: KernelBuilder) -> list[str]:
    lines = list[str]()
    fixed = {d: f"{d}_i" for d in b.kernel.grid}
    for loop in b.kernel.loops:
        bounds = b.structure.bounds[loop]
        index = {d: fixed.get(d, "0") for d in (*fixed, *b.tiling.spread)}
        low, high = tile_limits(b.tiling, bounds, loop, index, _never_empty(b, loop))
        if low == "0":
            lines += [f"for {loop}_t in T.serial({high}):", f"{loop}_i = {loop}_t"]
        else:
            lines += [f"{loop}_first = {low}", f"for {loop}_t in T.serial({high} - {loop}_first):", f"{loop}_i = {loop}_first + {loop}_t"]
        fixed[loop] = f"{loop}_i"
    return lines


def _never_empty(b: KernelBuilder, loop: str) -> bool:
    """Whether every choice of the fixed tiles leaves at least one tile of the loop to visit."""
    bounds = b.structure.bounds[loop]
    dims = sorted({d for x in bounds for d, _ in x.starts})
    if not dims:
        return True
    if len(dims) > 1:
        return False
    tile = b.tiling.tile(dims[0])
    ranges = (_open_range(b, loop, {dims[0]: i * tile}) for i in range(b.tiling.trips(dims[0])))
    return all(low < high for low, high in ranges)


def _open_range(b: KernelBuilder, loop: str, starts: dict[str, int]) -> tuple[int, int]:
    """As masks.tile_range, but empty where no tile needs a visit."""
    low, high = tile_range(b.tiling, tuple(x for x in b.structure.bounds[loop] if x.coefficient > 0), loop, starts)
    _, top = tile_range(b.tiling, tuple(x for x in b.structure.bounds[loop] if x.coefficient < 0), loop, starts)
    return low, min(high, top)
