"""The rules that need no run: each looks at a kernel's facts and says what breaks it, where, and what to do.

The predicates themselves are those of `fusion.rules`, which the planner uses too.

A rule's `verdict` is what it makes of the kernel. "refused" is final; a race, deadlock or wrong numbers are only foretold: where the kernel
can be run, the run decides, and a foretold mistake that did not happen becomes a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from fusion.check import crossings
from fusion.check import program as p
from fusion.check.facts import COPIES, GEMMS, Facts, Local, Memory, Touch, itemsize
from fusion.check.liveness import peak
from fusion.check.report import Finding, Place
from fusion.plan.device import Limits
from fusion.rules import handoffs, memory, names

COMBINE, CROSS_SYNC = "tl.ascend_auto_cv_combine", "tl.ascend_auto_cross_core_sync"
PLANNING = "tl.ascend_memory_planning"


@dataclass(frozen=True)
class Context:
    facts: Facts
    configs: Mapping[str, bool]
    limits: Limits

    def on(self, key: str) -> bool:
        return bool(self.configs.get(key, False))

    @property
    def automatic(self) -> bool:
        """Whether the compiler splits the kernel and orders the halves."""
        return self.on(COMBINE) and self.on(CROSS_SYNC)

    @property
    def mixed(self) -> bool:
        return len(self.facts.units()) == 2


Rule = Callable[[Context], Iterator[Finding]]


def sync_without_combine(c: Context) -> Iterator[Finding]:
    if c.mixed and c.on(CROSS_SYNC) and not c.on(COMBINE):
        yield Finding(
            "sync-without-combine",
            0,
            "TL_ASCEND_AUTO_CV_SYNC is on and TL_ASCEND_AUTO_CV_COMBINE is off",
            "set TL_ASCEND_AUTO_CV_COMBINE to True as well",
            "flags are inserted where the kernel is split into its Cube and Vector halves; without the split there are none",
            "refused",
            fix="combine",
        )


def mixed_flags(c: Context) -> Iterator[Finding]:
    manual = c.facts.manual()
    if manual and c.automatic:
        yield Finding(
            "mixed-flags",
            manual[0].line,
            f"{len(manual)} hand-written cross-core flags in a kernel whose flags the compiler hands out",
            "leave out the hand-written flags, or switch TL_ASCEND_AUTO_CV_SYNC off and write all of them",
            "the compiler counts its own ids from 0 and does not see the others: two handoffs may share an id",
            "race",
            places=tuple(Place(t.line, "also here") for t in manual[1:4]),
        )


def workspace_names(c: Context) -> Iterator[Finding]:
    for crossing in crossings.explicit(c.facts):
        if c.automatic and not names.is_ordered(crossing.name):
            yield Finding(
                "workspace-names",
                crossing.reads[0].line,
                f"{crossing.name} goes {crossing.direction} through GM, and its name has no {names.MARK!r} in it",
                f"rename it to {names.renamed(crossing.name, frozenset(b.name for b in c.facts.program.buffers))}",
                "the compiler inserts flags by the name only: the reader does not wait for the writer",
                "race",
                places=(Place(crossing.writes[0].line, f"{crossing.writer} writes it"),),
                fix=f"rename {crossing.name}",
            )


def unequal_counts(c: Context) -> Iterator[Finding]:
    for crossing in crossings.explicit(c.facts):
        writes, reads = crossing.writes, crossing.reads
        if not c.automatic or not names.is_ordered(crossing.name) or handoffs.counts_agree(len(writes), len(reads)):
            continue
        yield Finding(
            "unequal-counts",
            (reads if len(reads) > len(writes) else writes)[-1].line,
            f"{crossing.writer} writes {crossing.name} {_times(len(writes))}, {crossing.reader} reads it {_times(len(reads))}",
            "read it once and use the tile again" if len(reads) > len(writes) else "read it as often as it is written, or write it once",
            "writes and reads of a workspace are paired in order; the compiler stops with 'Mismatch in sync points'",
            "refused",
            places=(*(Place(t.line, "written here") for t in writes), *(Place(t.line, "read here") for t in reads)),
            fix=f"hoist {crossing.name}",
        )


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def one_fragment_one_relay(c: Context) -> Iterator[Finding]:
    for source in dict.fromkeys(r.source for r in c.facts.relays):
        mine = [r for r in c.facts.relays if r.source == source]
        if len(mine) < 2 or not c.on(COMBINE):
            continue
        yield Finding(
            "one-fragment-one-relay",
            mine[1].copy.line,
            f"{source} is handed {mine[0].direction} {_times(len(mine))}",
            "use one fragment for each handoff",
            "the compiler leads both through one workspace and counts its reads wrong ('Mismatch in sync points')",
            "refused",
            places=tuple(Place(r.copy.line, f"to {r.target}") for r in mine),
            fix=f"fragment {source}",
        )


def flags_fit(c: Context) -> Iterator[Finding]:
    found = crossings.all_handoffs(c.facts)
    needed = handoffs.flags_needed(len(found))
    if c.automatic and needed > c.limits.cross_flags:
        over = found[c.limits.cross_flags]
        yield Finding(
            "flags-fit",
            over.line,
            f"{needed} handoffs need {needed} cross-core flags, the hardware has {c.limits.cross_flags}",
            "split the kernel, or hand over fewer values",
            "the compiler counts on without a word: ids beyond the last flag do nothing, or hit something else",
            "refused",
            places=(Place(found[0].line, "the first handoff"),),
        )


def manual_flags_fit(c: Context) -> Iterator[Finding]:
    for touch in c.facts.manual():
        flag = crossings.flag_id(touch)
        if flag is not None and not 0 <= flag < c.limits.cross_flags:
            yield Finding(
                "flags-fit",
                touch.line,
                f"cross-core flag {flag}, the hardware has 0-{c.limits.cross_flags - 1}",
                "use a smaller id",
                "an id beyond the last flag does nothing, or hits something else",
                "refused",
            )


MEMORIES: tuple[tuple[Memory, str], ...] = (("UB", "ub"), ("L1", "l1"), ("L0C", "l0c"))


def memory_fits(c: Context) -> Iterator[Finding]:
    for name, key in MEMORIES:
        limit = c.limits.memory(key)
        used, live = peak(c.facts, name, c.on(PLANNING))
        if memory.over(used, limit):
            buffers = sorted(live, key=lambda b: -_bytes(c.facts, b))
            table = ", ".join(f"{b.name} {'x'.join(map(str, b.shape))} {b.dtype} {_bytes(c.facts, b)} B" for b in buffers)
            yield Finding(
                "memory-fits",
                buffers[0].line,
                f"{used} B of {name} are in use at once, there are {limit} B: {table}",
                "use smaller tiles, or fewer of them at once",
                "the compiler crashes, or gives addresses beyond the memory",
                "refused",
                places=tuple(Place(b.line, f"{b.name}: {_bytes(c.facts, b)} B") for b in buffers[:6]),
            )


def _bytes(facts: Facts, buffer: Local) -> int:
    return crossings.bytes_of(facts, buffer)


def cube_tiles_fit(c: Context) -> Iterator[Finding]:
    for touch in (t for t in c.facts.touches if t.op in GEMMS and t.op == "ascend_gemm_v0" and t.call):
        sizes = crossings.gemm_sizes(touch)
        operand = c.facts.locals.get(touch.reads[0])
        if sizes is None or operand is None:
            continue
        m, n, k = sizes
        for side, rows in (("rows of A", m), ("columns of B", n)):
            need = memory.cube_operand_bytes(rows, k, itemsize(operand.dtype))
            if memory.over(need, c.limits.l0a):
                yield Finding(
                    "cube-tiles-fit",
                    touch.line,
                    f"{rows} {side} with a sum of {k} take {need} B of L0A or L0B, there are {c.limits.l0a} B",
                    "use a smaller tile on that side",
                    "gemm_v0 keeps two slices of 128 along the sum",
                    "refused",
                )


def fractal_alignment(c: Context) -> Iterator[Finding]:
    seen = set[str]()
    for touch in (t for t in c.facts.touches if t.op in GEMMS):
        for name in touch.reads[:2]:
            buffer = c.facts.locals.get(name)
            if buffer is None or name in seen or len(buffer.shape) < 2:
                continue
            seen.add(name)
            rests = [s for s in buffer.shape[-2:] if memory.fractal_rest(s, itemsize(buffer.dtype))]
            if rests:
                yield Finding(
                    "fractal-alignment",
                    buffer.line,
                    f"{name} is {' x '.join(map(str, buffer.shape))} {buffer.dtype}: {rests[0]} is no multiple of 16",
                    "round the side up to a multiple of 16 and let the copy fill the rest with zeros",
                    "L1 holds whole 16 x 16 fractals; the compiler reserves only the bytes of the shape, and the next buffer overlaps",
                    "wrong",
                    places=(Place(touch.line, "multiplied here"),),
                )


def row_alignment(c: Context) -> Iterator[Finding]:
    seen = set[str]()
    for touch in (t for t in c.facts.touches if t.op in COPIES):
        for name in (*touch.reads[:1], *touch.writes):
            buffer = c.facts.locals.get(name)
            other = next((n for n in (*touch.reads[:1], *touch.writes) if n != name), "")
            if buffer is None or buffer.memory != "UB" or name in seen or c.facts.memory(other) != "GM" or len(buffer.shape) < 2:
                continue
            seen.add(name)
            rest = memory.block_rest(buffer.shape[-1], itemsize(buffer.dtype))
            if rest and buffer.shape[-2] > 1 and buffer.bytes:
                yield Finding(
                    "row-alignment",
                    buffer.line,
                    f"a row of {name} has {buffer.shape[-1] * itemsize(buffer.dtype)} bytes, no multiple of {memory.BLOCK_BYTES}",
                    "make the rows a multiple of 32 bytes long",
                    "data moves between GM and UB in blocks of 32 bytes: rows are padded, and no longer lie where the code looks",
                    "wrong",
                    places=(Place(touch.line, "copied here"),),
                )


def single_slots_are_ordered(c: Context) -> Iterator[Finding]:
    hands = crossings.hands(c.facts)
    for found, hand in hands:
        if c.automatic and handoffs.may_be_overtaken(hand, [h for _, h in hands]):
            count = crossings.slots(found)
            where = "one slot" if count == 1 else f"{count} slots"
            yield Finding(
                "single-slot-one-way",
                found.line,
                f"{found.title} goes {hand.direction} on {where} in a loop, and nothing comes back",
                "give every iteration its own slot, hand something back, or use a second workspace as a free signal",
                "only 'ready' is signalled, never 'free': the writer may fill the slot again before it has been read",
                "race",
                places=(Place(found.read_line, f"{hand.direction.split('->')[1]} reads it here"),),
            )


def guarded_handoffs(c: Context) -> Iterator[Finding]:
    for found in crossings.all_handoffs(c.facts):
        if c.automatic and not handoffs.guards_agree(found.writer_conditions, found.reader_conditions):
            extra = (*found.writer_conditions, *found.reader_conditions)
            side = "written" if len(found.writer_conditions) > len(found.reader_conditions) else "read"
            yield Finding(
                "guarded-handoff",
                found.line if side == "written" else found.read_line,
                f"{found.title} is {side} only if {extra[-1]}, and the other side does not ask",
                "put write and read under the same condition, or take the handoff out of the condition",
                "a flag goes where its copy goes: it is waited for and never set (deadlock), or set and left over (stale data)",
                "deadlock",
                places=(Place(found.line, "written here"), Place(found.read_line, "read here")),
            )


def relay_inside_rows(c: Context) -> Iterator[Finding]:
    for relay in c.facts.relays:
        if relay.consumer is not None and relay.direction == "cube->vector" and _row_by_row(relay.consumer):
            yield Finding(
                "relay-inside-rows",
                relay.consumer.line,
                f"{relay.target} comes from {relay.source} and is first used in a T.Parallel that works row by row",
                f"put a whole-tile operation first (for example T.tile.mul({relay.target}, {relay.target}, 1.0)), or use T.tile.broadcast",
                "the compiler puts the copy back inside the row loop: every row loads the tile again, only the last row's update stays",
                "wrong",
                places=(Place(relay.copy.line, "handed over here"),),
            )


def _row_by_row(touch: Touch) -> bool:
    """A store to a tile that reads something with fewer indices: a row broadcast, which lowers to a loop over rows."""
    if touch.store is None or sum(loop.kind == "parallel" for loop in touch.loops) < 2:
        return False
    target = len(touch.store.indices)
    return any(len(part.indices) < target for part in p.walk(touch.store.value) if isinstance(part, p.Load))


def pipelined_ranges(c: Context) -> Iterator[Finding]:
    seen = set[str]()
    for touch in c.facts.touches:
        for loop in touch.loops:
            if loop.stages < 2 or loop.key in seen or not _mixed_loop(c.facts, loop.key):
                continue
            seen.add(loop.key)
            odd = loop.trips is not None and loop.trips % loop.stages
            if loop.start or odd:
                what = f"starts at {loop.start}" if loop.start else f"has {loop.trips} iterations, no multiple of num_stages={loop.stages}"
                yield Finding(
                    "pipelined-range",
                    touch.line,
                    f"the pipelined loop over {loop.var} holds Cube and Vector work and {what}",
                    "let it start at 0 and run a multiple of num_stages times, or use T.serial",
                    "the compiler drops or shifts iterations of such a loop",
                    "wrong",
                )


def _mixed_loop(facts: Facts, key: str) -> bool:
    return len({t.unit for t in facts.touches if any(loop.key == key for loop in t.loops)}) == 2


RULES: tuple[Rule, ...] = (
    sync_without_combine,
    mixed_flags,
    workspace_names,
    unequal_counts,
    one_fragment_one_relay,
    flags_fit,
    manual_flags_fit,
    memory_fits,
    cube_tiles_fit,
    fractal_alignment,
    row_alignment,
    single_slots_are_ordered,
    guarded_handoffs,
    relay_inside_rows,
    pipelined_ranges,
)


def static_findings(facts: Facts, configs: Mapping[str, bool], limits: Limits | None = None) -> tuple[Finding, ...]:
    """Every static rule's findings, in the order of the rules."""
    context = Context(facts, configs, limits or Limits())
    return tuple(finding for rule in RULES for finding in rule(context))
