"""Order, counts and flags of the values that cross Cube and Vector through GM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Direction = Literal["cube->vector", "vector->cube"]


@dataclass(frozen=True)
class Hand:
    """One handoff. `made` and `read` are places in program order: of the write, and of the reader's first read.

    `loops` are the loops around both, outermost first. `sources` are the values handed over in the other direction that this one is
    computed from within the same iteration, `carried` also those of the iteration before. `slots` is how many tiles the buffer has,
    0 one for every iteration. `free`: the reader tells the writer that it has read. `phase` tells work before a loop from work after it.
    """

    value: str
    direction: Direction
    loops: tuple[str, ...]
    made: int
    read: int
    sources: frozenset[str]
    slots: int = 1
    free: bool = False
    carried: frozenset[str] = frozenset()
    phase: str = ""


def flags_needed(handoffs: int, free: int = 0) -> int:
    """Every handoff takes a cross-core flag id, a free handoff a second one."""
    return handoffs + free


def counts_agree(writes: int, reads: int) -> bool:
    """CombineCV pairs the writes and reads of a workspace in order: it needs as many of the one as of the other."""
    return writes == reads


def guards_agree(writer: Sequence[str], reader: Sequence[str]) -> bool:
    """A flag goes where its copy goes: under a condition that the other side does not have, one is set and not waited for, or never set."""
    return tuple(writer) == tuple(reader)


def _around(hand: Hand, other: Hand) -> bool:
    return other.loops[: len(hand.loops)] == hand.loops


def ordered_by_cycle(hand: Hand, others: Sequence[Hand]) -> bool:
    """Whether the writer cannot be an iteration ahead, because it waits for something that the reader makes after it has read.

    Cross-core waits stop a whole unit, each unit loads in program order, and the Cube multiplies in program order. So a handoff `back`
    orders the tile if the reader makes it after the tile, from the tile or from something loaded later; or if the writer waits for it
    before it writes, for then it is the next iteration's.
    """
    forth = [h for h in others if (h.direction, h.loops, h.phase) == (hand.direction, hand.loops, hand.phase)]
    later = {h.value for h in forth if h.read >= hand.read}
    for back in (h for h in others if h.direction != hand.direction and _around(hand, h)):
        waits_first = back.read <= hand.made
        if hand.direction == "vector->cube" and (waits_first or back.made >= hand.read):
            return True
        earlier = waits_first and (back.sources | back.carried) & {h.value for h in forth}
        if hand.direction == "cube->vector" and (back.sources & later or earlier):
            return True
    return False


def may_be_overtaken(hand: Hand, others: Sequence[Hand]) -> bool:
    """Only "ready" is signalled, never "free": a tile that a loop uses again needs a cycle between the units, slots, or a free handoff."""
    return bool(hand.loops) and hand.slots == 1 and not hand.free and not ordered_by_cycle(hand, others)


def may_flood(hand: Hand, others: Sequence[Hand], trips: int, depth: int) -> bool:
    """Without a way back the writer sets its flag in every iteration, and a flag counts to `depth`."""
    return bool(hand.loops) and hand.slots == 0 and trips > depth and not hand.free and not ordered_by_cycle(hand, others)
