"""What makes a kernel or a plan legal: a list of named rules, each a function that says what breaks it.

Rules about structure look only at stages, grid and loops; rules about a kernel look at its handoffs too; rules about memory look at the
buffers that emission would allocate. Sources: the device's public figures and the behaviour of tilelang-ascend 0.1.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import networkx as nx

from fusion.emit.gm import band
from fusion.emit.tile_ops import TILE_OPS
from fusion.graph import Op
from fusion.graph.ops import OPS
from fusion.plan.device import Limits
from fusion.plan.masks import partly_kept
from fusion.plan.structure import Structure
from fusion.plan.tiling import COMPARISONS, REPEAT, fractal
from fusion.plan.trips import most_visited
from fusion.plan.types import Handoff, Kernel, Plan, Refusal
from fusion.rules import handoffs, memory, names
from fusion.rules.handoffs import Hand

StructureRule = Callable[[Structure], Iterator[tuple[str, str]]]  # yields (where, why)
KernelRule = Callable[[Structure, Kernel, Limits], Iterator[tuple[str, str]]]


# ---- structure


def exists_after(s: Structure) -> Iterator[tuple[str, str]]:
    """A stage whose input exists only once an output has reached the host cannot share that output's kernel."""
    for source, reader, output in s.graph.host_edges():
        if source in s.stages and reader in s.stages:
            inputs = [v.name for v in s.graph.inputs if output in v.after and v.name in s.graph.stage_reads(reader)]
            yield reader, f"{', '.join(inputs)} exists only after {output}, which stage {source} of the same kernel makes"


def phases_share_outputs(s: Structure) -> Iterator[tuple[str, str]]:
    """A launch that the caller waits for leaves outputs behind, not intermediates for a later phase."""
    early = s.graph.before_host
    if not early.intersection(s.stages):
        return
    for out in s.stored:
        readers = [r for r in s.graph.readers(out) if r not in s.stages and r not in early]
        if readers and s.graph.value(out).role == "intermediate":
            yield s.made[out][0].name, f"{out} would have to be kept from this launch until the one of stage {readers[0]}, in a later phase"


def grid_sum_is_final(s: Structure) -> Iterator[tuple[str, str]]:
    """A reduction across blocks is complete only when the launch has ended."""
    for out, (stage, op) in s.made.items():
        dims = s.crosses_grid(op)
        readers = [r for r, o in s.readers.get(out, ()) if s.accumulator.get(out) != o.out]
        if dims and readers:
            yield (
                readers[0].name,
                f"{out} of stage {stage.name} is summed across blocks over {' '.join(sorted(dims))}, and read in the kernel",
            )


def only_sums_cross_blocks(s: Structure) -> Iterator[tuple[str, str]]:
    """Blocks combine results by adding in GM; there is no atomic maximum for them."""
    for out, (stage, op) in s.made.items():
        if s.crosses_grid(op) and op.fn not in ("sum", "contract", "add"):
            yield stage.name, f"{out} = {op.fn} over {' '.join(sorted(s.crosses_grid(op)))} would have to be combined across blocks"


def loop_sum_is_final(s: Structure) -> Iterator[tuple[str, str]]:
    """What a loop adds up is complete only when the loop has ended."""
    for out, (stage, op) in s.made.items():
        late = s.accumulates(stage, op) or out in s.nexts or s.levels[out] == "epilogue"
        for reader, o in s.readers.get(out, ()):
            inside = s.levels[o.out] == "body" and s.accumulator.get(out) != o.out
            if late and inside and not (out in s.nexts and reader.scan == stage.scan and reader.scan):
                yield (
                    reader.name,
                    f"{out} of stage {stage.name} is complete only after the loop over {' '.join(s.loops)}, and read inside it",
                )


def body_values_stay_in_body(s: Structure) -> Iterator[tuple[str, str]]:
    """A tile made in an iteration is gone after the loop, unless it was added up or carried."""
    for out, level in s.levels.items():
        for reader, o in s.readers.get(out, ()):
            if level == "body" and s.levels[o.out] == "epilogue" and not s.complete_after_loop(out) and s.accumulator.get(out) != o.out:
                yield reader.name, f"{out} of stage {s.made[out][0].name} holds one iteration of the loop over {' '.join(s.loops)}"


def sums_run_all_loops(s: Structure) -> Iterator[tuple[str, str]]:
    """Work that leaves the iteration must belong to every loop, or it would be added or stored again and again."""
    stored, loops = set(s.stored), set(s.loops)
    for out, (stage, op) in s.made.items():
        mine = set(s.op_loops(stage, op))
        for part in s.parts(stage, op):
            mine |= set(s.op_loops(stage, part))
        adds = s.accumulates(stage, op)
        if adds and (set(adds) != loops or (s.crosses_grid(op) and mine != loops)):
            yield stage.name, f"{out} is added up over {' '.join(sorted(adds))} only, but the kernel loops over {' '.join(s.loops)}"
        elif s.levels[out] == "body" and mine != loops and (s.crosses_grid(op) or (out in stored and not s.complete_after_loop(out))):
            yield stage.name, f"{out} does not change with {' '.join(sorted(loops - mine))}, over which the kernel loops"


def one_block_stores(s: Structure) -> Iterator[tuple[str, str]]:
    """What goes to GM belongs to one block only."""
    for out in s.stored:
        stage, op = s.made[out]
        dims = {d for p in s.parts(stage, op) for d in s.graph.op_dims(p)} | set(s.graph.op_dims(op))
        missing = [d for d in s.grid if d not in dims]
        if missing:
            yield stage.name, f"{out} would be stored by every block along {' '.join(missing)}"


def scan_is_the_loop(s: Structure) -> Iterator[tuple[str, str]]:
    """The steps of a scan follow each other in one block, with no other loop around."""
    for name in s.stages:
        scan = s.graph.stage(name).scan
        if scan and scan in s.grid:
            yield name, f"steps along {scan} follow each other, so {scan} cannot be spread over blocks"
        elif scan and s.loops and s.loops != (scan,):
            yield name, f"a scan along {scan} must be the kernel's only loop, it has {' '.join(s.loops)}"


def scans_stay_whole(s: Structure) -> Iterator[tuple[str, str]]:
    """The stages of a scan pass states to each other in every step."""
    for group in s.graph.scan_groups():
        missing = [n for n in group if n not in s.stages]
        if missing and len(missing) < len(group):
            yield missing[0], f"steps together with {', '.join(n for n in group if n in s.stages)} along {s.graph.stage(missing[0]).scan}"


def no_cube_to_cube(s: Structure) -> Iterator[tuple[str, str]]:
    """L0C cannot feed a contraction; through GM there is no flag between two Cube stages."""
    for out, (stage, _) in s.made.items():
        for reader, o in s.readers.get(out, ()):
            if s.unit(out) == "cube" and reader.unit == "cube" and s.accumulator.get(out) != s.accumulator.get(o.out):
                yield reader.name, f"{out} comes from Cube stage {stage.name}; put a Vector stage (a cast) between, or a kernel boundary"


def one_crossing_each(s: Structure) -> Iterator[tuple[str, str]]:
    """A value goes from one unit to the other once: in every step of a scan, or after it."""
    for out, (stage, _) in s.made.items():
        readers = [r for r, o in s.readers.get(out, ()) if r.unit != s.unit(out) and o.out not in s.absorbed]
        after = [r for r in readers if r.scan != stage.scan]
        if s.loops and after and s.crosses_in_step(out):
            why = f"{out} of stage {stage.name} crosses units in every step along {stage.scan} already; copy it for the stage after"
            yield after[0].name, why


def tiles_are_matrices(s: Structure) -> Iterator[tuple[str, str]]:
    """On-chip tiles have at most two tiled dims; a contraction has one of each kind."""
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
        elif len(dims) > 2:
            yield stage.name, f"{out} works on {len(dims)} tiled dims ({' '.join(dims)}), a tile has two"


def has_tile_code(s: Structure) -> Iterator[tuple[str, str]]:
    for out, (stage, op) in s.made.items():
        if out in s.graph.slices or out in s.graph.silent:
            continue
        if TILE_OPS[op.fn] is None:
            yield stage.name, f"{out} = {op.fn} has no tile code yet"
        elif stage.unit == "vector" and (dtype := _unfit(s, op)):
            yield stage.name, f"{out} = {op.fn} of {dtype}: the Vector unit computes in float32 and float16; cast before and after"


def _unfit(s: Structure, op: Op) -> str:
    """A dtype in which an operation cannot be computed; integers and bfloat16 can be cast and moved."""
    result, reads = s.graph.value(op.out).dtype, [s.graph.value(r).dtype for r in op.reads]
    allowed = ("float32", "float16", "bool", *(("bfloat16",) if op.fn in ("cast", "copy") else ()))
    moved = ("int32", "int8") if op.fn == "cast" else ()
    return next((d for d in (result, *reads) if d not in allowed and not (d in moved and d != result)), "")


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


def tiles_are_fractals(s: Structure) -> Iterator[tuple[str, str]]:
    """The Cube works on fractals of 16 rows of 32 bytes."""
    for out, (stage, op) in s.made.items():
        for d in s.graph.op_dims(op) if OPS[op.fn].form == "contract" else ():
            if s.tiling.is_matrix(d) and s.tiling.tile(d) % fractal(s.graph, d):
                yield stage.name, f"{out}: tile {s.tiling.tile(d)} of {d} is no multiple of {fractal(s.graph, d)}"


def comparisons_fill_repeats(s: Structure) -> Iterator[tuple[str, str]]:
    """Data is compared by whole repeats of 256 bytes."""
    for out, (stage, op) in s.made.items():
        if op.fn in COMPARISONS and s.tiling.shape(out) and not s.fills_repeats(out, 1):
            tile = " x ".join(str(s.tiling.tile(d)) for d in s.tiling.shape(out))
            yield stage.name, f"{out} = {op.fn} compares a tile of {tile} elements, which is no multiple of {REPEAT}"


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


def slices_are_loaded(s: Structure) -> Iterator[tuple[str, str]]:
    """A part of a tensor is a matter of where it is loaded from: it must be in GM, and not stored tile by tile."""
    for out in s.made:
        part = s.graph.slices.get(out)
        if part and part.source in s.made:
            maker = s.made[part.source][0].name
            yield s.made[out][0].name, f"{out} is a part of {part.source}, which stage {maker} of the same kernel makes"
        elif part and band(s.tiling, s.graph.value(part.source)):
            yield s.made[out][0].name, f"{out} is a part of {part.source}, which is stored tile by tile"


STRUCTURE_RULES: tuple[StructureRule, ...] = (
    exists_after,
    phases_share_outputs,
    scans_stay_whole,
    has_tile_code,
    tiles_are_matrices,
    scan_is_the_loop,
    grid_sum_is_final,
    only_sums_cross_blocks,
    loop_sum_is_final,
    body_values_stay_in_body,
    sums_run_all_loops,
    one_block_stores,
    no_cube_to_cube,
    one_crossing_each,
    numbers_meet_tiles,
    slices_are_loaded,
    tiles_are_fractals,
    masks_stay_in_ub,
    comparisons_fill_repeats,
)


GROWING_RULES: tuple[StructureRule, ...] = (
    exists_after,
    has_tile_code,
    tiles_are_matrices,
    scan_is_the_loop,
    grid_sum_is_final,
    only_sums_cross_blocks,
    loop_sum_is_final,
    body_values_stay_in_body,
    no_cube_to_cube,
)
"""Rules that a kernel which breaks them cannot mend by taking in more stages."""


def structure_refusals(s: Structure) -> Iterator[Refusal]:
    """Every structural rule that the kernel breaks."""
    for rule in STRUCTURE_RULES:
        for where, why in rule(s):
            yield Refusal(rule.__name__.replace("_", "-"), where, why)


# ---- handoffs


def workspaces_are_named(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[tuple[str, str]]:
    """The compiler inserts flags only around GM buffers whose name contains "workspace"."""
    for h in kernel.handoffs:
        if h.kind == "workspace" and not names.is_ordered(h.name):
            yield h.name, f"carries {h.value} {h.direction}; without 'workspace' in its name the compiler inserts no flag"


def handoffs_are_complete(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[tuple[str, str]]:
    """Every value that crosses units has exactly one handoff, and nothing else has one."""
    need, have = [h.value for h in s.handoffs], [h.value for h in kernel.handoffs]
    yield from ((v, "crosses Cube and Vector, but has no handoff") for v in need if v not in have)
    yield from ((v, "has a handoff, but does not cross Cube and Vector here") for v in have if v not in need)
    yield from ((v, "has more than one handoff: one write and one read each") for v in sorted({v for v in have if have.count(v) > 1}))


def flags_fit(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[tuple[str, str]]:
    """Every handoff takes a cross-core flag id, a free handoff a second one."""
    used = handoffs.flags_needed(len(kernel.handoffs), sum(h.free for h in kernel.handoffs))
    if used > limits.cross_flags:
        yield kernel.name, f"{used} handoffs need {used} cross-core flags, the hardware has {limits.cross_flags}"


def _made_from(s: Structure, value: str) -> set[str]:
    """All that a value is computed from within the same iteration."""
    seen, front = set[str](), [value]
    while front:
        at = front.pop()
        if at in s.made and at not in seen:
            seen.add(at)
            front += [r for r in s.made[at][1].reads if r not in s.states]
    return seen


def _first_read(s: Structure, value: str, unit: str) -> int:
    return min(s.position[o.out] for st, o in s.readers[value] if st.unit == unit)


def _hand(s: Structure, h: Handoff, others: tuple[Handoff, ...], looped: bool = True) -> Hand:
    """A handoff as the shared rules see it."""
    loops = () if not looped else ("task", "loop") if h.level == "body" else ("task",)
    back = {other.value for other in others if other.direction != h.direction}
    read = _first_read(s, h.value, h.direction.split("->")[1])
    return Hand(
        h.value, h.direction, loops, s.position[h.value], read, frozenset(_made_from(s, h.value) & back), h.slots, h.free, phase=h.level
    )


def _hands(s: Structure, kernel: Kernel) -> list[Hand]:
    """A kernel's handoffs; those of a loop's body, and of a persistent kernel, run again and again."""
    looped = [(h.level == "body" and bool(kernel.loops)) or kernel.persistent for h in kernel.handoffs]
    return [_hand(s, h, kernel.handoffs, again) for h, again in zip(kernel.handoffs, looped, strict=True)]


def ordered_by_cycle(s: Structure, handoff: Handoff, others: tuple[Handoff, ...]) -> bool:
    """Whether the writer of a handoff in a loop cannot be an iteration ahead of its reader."""
    return handoffs.ordered_by_cycle(_hand(s, handoff, (handoff, *others)), [_hand(s, h, (handoff, *others)) for h in others])


def single_slots_are_ordered(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[tuple[str, str]]:
    """Only "ready" is signalled, never "free": a tile that a loop uses again needs a cycle between the units, slots, or a free handoff."""
    hands = _hands(s, kernel)
    for h, hand in zip(kernel.handoffs, hands, strict=True):
        if handoffs.may_be_overtaken(hand, hands):
            yield h.value, f"{h.name} goes {h.direction} on one slot in a loop and nothing comes back: the writer may overtake the reader"


def slots_do_not_flood(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[tuple[str, str]]:
    """Without a way back the writer sets its flag in every iteration; the counter holds 15."""
    trips = most_visited(s)
    hands = _hands(s, kernel)
    for h, hand in zip(kernel.handoffs, hands, strict=True):
        if h.level == "body" and handoffs.may_flood(hand, hands, trips, limits.flag_depth):
            yield h.value, f"{h.name} may be set {trips} times before it is waited for, a flag counts to {limits.flag_depth}"


def relays_are_plain(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[tuple[str, str]]:
    """The compiler's relay moves a whole tile on one slot: for one Vector core, without a copy in GM that other kernels read."""
    for h in (h for h in kernel.handoffs if h.kind == "relay"):
        if kernel.threads != 1:
            yield h.value, f"goes by relay, but {kernel.threads} Vector cores share its tile by rows; use threads 1 or a workspace"
        elif h.slots != 1 or h.free or h.value in s.stored:
            yield h.value, "goes by relay, which has one slot and no free handoff, and is not kept in GM; use a workspace"


def tasks_are_ordered(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[tuple[str, str]]:
    """A persistent block uses its slots, and counts its flags, again in the next task: a way back must hold the writer."""
    hands = _hands(s, kernel) if kernel.persistent else []
    for h, hand in zip(kernel.handoffs, hands, strict=False):
        if h.slots == 0 and not h.free and not handoffs.ordered_by_cycle(hand, hands):
            yield h.value, f"{h.name} goes {h.direction} and nothing comes back: in a persistent kernel the next task's writer may overtake"


def vector_cores_agree(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[tuple[str, str]]:
    """Two Vector cores share a tile by its rows; where that is impossible one core does all."""
    if kernel.threads == 2 and s.split is None:
        yield kernel.name, "its Vector stages cannot be shared by rows between two Vector cores; use threads 1"


def masked_tiles_are_skipped(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[tuple[str, str]]:
    """A value between kernels is kept only where its mask can hold: whoever stores or loads it visits those tiles only."""
    for v in (*s.stored, *s.loaded):
        if s.graph.value(v).role == "intermediate":
            for c in (c for c in partly_kept(s.tiling, v) if not s.skips(c)):
                yield v, f"is kept only where {c}; a loop over {' or '.join(c.dims)} has to leave out the other tiles"


def dims_are_placed(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[tuple[str, str]]:
    """Every dim with more than one tile is in the grid or a loop, no dim in both, and only dims that the stages have."""
    have = {d for n in kernel.stages for d in s.graph.stage_dims(n)}
    for d in s.tiling.spread:
        places = kernel.grid.count(d) + kernel.loops.count(d)
        if d in have and places != 1:
            yield d, f"has {s.tiling.trips(d)} tiles and is {'neither in the grid nor in a loop' if not places else 'placed twice'}"
    yield from ((d, "is in the grid or a loop, but no stage has it") for d in (*kernel.grid, *kernel.loops) if d not in have)


def cube_tiles_fit(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[tuple[str, str]]:
    """A gemm double-buffers slices of 128 along the sum in L0A and L0B; one slot if the sum is no longer than that."""
    for out, (stage, op) in s.made.items():
        if OPS[op.fn].form != "contract":
            continue
        inner = next(d for d in op.over if s.tiling.is_matrix(d))
        size = s.graph.value(op.reads[0]).itemsize
        for d in s.tiling.shape(out):
            need = memory.cube_operand_bytes(s.tiling.tile(d), s.tiling.tile(inner), size)
            if memory.over(need, limits.l0a):
                yield stage.name, f"{out}: tile {s.tiling.tile(d)} of {d} takes {need} B of L0A/L0B, which has {limits.l0a} B"


KERNEL_RULES: tuple[KernelRule, ...] = (
    dims_are_placed,
    workspaces_are_named,
    handoffs_are_complete,
    flags_fit,
    single_slots_are_ordered,
    slots_do_not_flood,
    tasks_are_ordered,
    relays_are_plain,
    vector_cores_agree,
    cube_tiles_fit,
    masked_tiles_are_skipped,
)


DEFAULT_RULES: tuple[KernelRule, ...] = (flags_fit, cube_tiles_fit, slots_do_not_flood, masked_tiles_are_skipped)
"""Rules that a kernel with default handoffs (realize.py) may still break; it keeps the others by the way it is made."""
LASTING_RULES: tuple[KernelRule, ...] = (single_slots_are_ordered, slots_do_not_flood, tasks_are_ordered)
"""Rules that a persistent kernel may break where one block for each task does not."""


def memory_fits(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[tuple[str, str]]:
    """All buffers of a core fit its memories, the compiler's scratch for reductions included."""
    from fusion.plan.memory import on_chip

    for place, used, buffers in on_chip(s, kernel):
        limit = limits.memory(place)
        if memory.over(used, limit):
            largest = ", ".join(f"{n} {b} B" for n, b in buffers[:4])
            yield (
                kernel.name,
                f"needs {used} B of {place.upper()}, which has {limit} B (largest: {largest}); use smaller tiles or split it",
            )


def kernel_refusals(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[Refusal]:
    """Every rule that a kernel breaks; memory is looked at only if all else holds."""
    found = list(structure_refusals(s))
    for rule in KERNEL_RULES if not found else ():
        found += [Refusal(rule.__name__.replace("_", "-"), where, why) for where, why in rule(s, kernel, limits)]
    if not found:
        found += [Refusal("memory-fits", where, why) for where, why in memory_fits(s, kernel, limits)]
    yield from found


# ---- plans


def every_stage_runs_once(plan: Plan) -> Iterator[tuple[str, str]]:
    runs = [s for k in plan.kernels for s in k.stages] + list(plan.host_stages)
    for s in plan.graph.stages:
        if runs.count(s.name) != 1:
            yield s.name, f"runs {runs.count(s.name)} times"
    known = {s.name for s in plan.graph.stages}
    yield from ((s, "is not a stage of the operator") for s in runs if s not in known)


def kernels_are_acyclic(plan: Plan) -> Iterator[tuple[str, str]]:
    """No kernel waits for a later one."""
    owner = {s: i for i, k in enumerate(plan.kernels) for s in k.stages} | {s: len(plan.kernels) for s in plan.host_stages}
    for u, v in plan.graph.graph.edges:
        if owner.get(u, 0) > owner.get(v, 0):
            yield v, f"runs before {u}, whose result it reads"
    quotient = nx.DiGraph((owner[u], owner[v]) for u, v in plan.graph.graph.edges if u in owner and v in owner and owner[u] != owner[v])
    if not nx.is_directed_acyclic_graph(quotient):
        yield plan.graph.name, "its kernels need each other's results in a cycle"


def host_stages_are_last(plan: Plan) -> Iterator[tuple[str, str]]:
    """The host runs only what no kernel reads."""
    for s in plan.host_stages:
        readers = [r for out in plan.graph.stage(s).writes for r in plan.graph.readers(out) if r != s]
        if readers:
            yield s, f"runs on the host, but stage {readers[0]} reads its result"


PLAN_RULES = (every_stage_runs_once, kernels_are_acyclic, host_stages_are_last)
