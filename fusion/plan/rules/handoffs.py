"""Rules about a kernel's handoffs: their names, flags, slots, and that no writer overtakes its reader."""

from __future__ import annotations

from collections.abc import Iterator

from fusion.plan.device import Limits
from fusion.plan.structure import Structure
from fusion.plan.trips import most_visited
from fusion.plan.types import Handoff, Kernel
from fusion.rules import handoffs, names
from fusion.rules.handoffs import Hand


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


def tasks_are_ordered(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[tuple[str, str]]:
    """A persistent block uses its slots, and counts its flags, again in the next task: a way back must hold the writer."""
    hands = _hands(s, kernel) if kernel.persistent else []
    for h, hand in zip(kernel.handoffs, hands, strict=False):
        if h.slots == 0 and not h.free and not handoffs.ordered_by_cycle(hand, hands):
            yield h.value, f"{h.name} goes {h.direction} and nothing comes back: in a persistent kernel the next task's writer may overtake"


def relays_are_plain(s: Structure, kernel: Kernel, limits: Limits) -> Iterator[tuple[str, str]]:
    """The compiler's relay moves a whole tile on one slot: for one Vector core, without a copy in GM that other kernels read."""
    for h in (h for h in kernel.handoffs if h.kind == "relay"):
        if kernel.threads != 1:
            yield h.value, f"goes by relay, but {kernel.threads} Vector cores share its tile by rows; use threads 1 or a workspace"
        elif h.slots != 1 or h.free or h.value in s.stored:
            yield h.value, "goes by relay, which has one slot and no free handoff, and is not kept in GM; use a workspace"


def ordered_by_cycles(s: Structure) -> frozenset[str]:
    """Values whose writer, in a loop, cannot be an iteration ahead of its reader."""
    hands = [_hand(s, h, s.handoffs, True) for h in s.handoffs]
    return frozenset(h.value for h in hands if handoffs.ordered_by_cycle(h, hands))


def _hands(s: Structure, kernel: Kernel) -> list[Hand]:
    """A kernel's handoffs; those of a loop's body, and of a persistent kernel, run again and again."""
    looped = [(h.level == "body" and bool(kernel.loops)) or kernel.persistent for h in kernel.handoffs]
    return [_hand(s, h, kernel.handoffs, again) for h, again in zip(kernel.handoffs, looped, strict=True)]


def _hand(s: Structure, h: Handoff, others: tuple[Handoff, ...], looped: bool) -> Hand:
    """A handoff as the shared rules see it."""
    loops = () if not looped else ("task", "loop") if h.level == "body" else ("task",)
    back = {other.value for other in others if other.direction != h.direction}
    read = _first_read(s, h.value, h.direction.split("->")[1])
    return Hand(h.value, h.direction, loops, s.position[h.value], read, s.sources[h.value] & back, h.slots, h.free, phase=h.level)


def _first_read(s: Structure, value: str, unit: str) -> int:
    return min(s.position[o.out] for st, o in s.readers[value] if st.unit == unit)
