"""Smaller arguments for kernels that would take long to run: the same code on fewer tiles."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from fusion.check import crossings
from fusion.check.facts import GEMMS, Facts, Touch, number
from fusion.check.inspection import Inspection, Instance, Request, inspect_files

MOST_WORK = 3e7
"""Element operations that are simulated without a second thought: half a minute on one core."""
MACS_OF_AN_ELEMENT = 10
"""Products that the simulator does in the time of one element operation."""
UNKNOWN_TRIPS = 8


def work(facts: Facts) -> float:
    """About how many element operations a run is, all blocks together; a kernel with open sizes is given small ones anyway."""
    blocks = number(facts.program.blocks)
    return 0.0 if blocks is None else blocks * sum(_trips(touch) * _elements(facts, touch) for touch in facts.touches)


def _trips(touch: Touch) -> int:
    return math.prod(UNKNOWN_TRIPS if loop.trips is None else loop.trips for loop in touch.loops)


def _elements(facts: Facts, touch: Touch) -> float:
    if touch.op in GEMMS:
        sizes = crossings.gemm_sizes(touch)
        return math.prod(sizes) / MACS_OF_AN_ELEMENT if sizes else 0
    if touch.store is not None:
        return 1
    tiles = [math.prod(facts.locals[name].shape) for name in (*touch.writes, *touch.reads) if name in facts.locals]
    return max(tiles, default=0)


def smaller(facts: Facts, instance: Instance, given: Mapping[str, object]) -> dict[str, int]:
    """Arguments to take instead, {} if the kernel is small enough or no argument is a size alone.

    A size alone is a whole number that is a dim of a GM buffer and of no on-chip buffer, so that tiles keep their shape. Those that the
    command line gives stay. Sizes are halved, the largest first, and keep at least two of the largest tile.
    """
    left = work(facts)
    on_chip = {size for local in facts.locals.values() for size in local.shape}
    outside = {number(size) for buffer in facts.program.buffers for size in buffer.shape or ()}
    found = {name: v for name, v in instance.args.items() if type(v) is int and v in outside - on_chip and name not in given}
    least = 2 * max(on_chip, default=1)
    sizes = dict(found)
    while left > MOST_WORK:
        name = max(sizes, key=lambda n: sizes[n], default="")
        if not name or sizes[name] % 2 or sizes[name] // 2 < least:
            break
        sizes[name] //= 2
        left /= 2
    return {name: size for name, size in sizes.items() if size != found[name]}


def shrunk(requests: Sequence[tuple[Request, Instance, Mapping[str, int]]]) -> list[Instance | None]:
    """The kernels with smaller arguments; None for one that cannot be built with them."""
    found: dict[int, Inspection] = {}
    jobs = [Request(request.path, request.text, instance.factory, {**instance.args, **sizes}) for request, instance, sizes in requests]
    if jobs:
        inspect_files(jobs, lambda index, inspection: found.update({index: inspection}))
    return [_built(found[index], instance) for index, (_, instance, _) in enumerate(requests)]


def _built(found: Inspection, wanted: Instance) -> Instance | None:
    mine = [i for i in found.instances if i.factory == wanted.factory and i.program is not None and i.problem is None]
    return mine[0] if len(mine) == 1 else None


def note(instance: Instance, sizes: Mapping[str, int]) -> str:
    """What is said about a kernel that was checked with smaller arguments."""
    taken = ", ".join(f"{name}={size}" for name, size in sizes.items())
    whole = " ".join(f"{name}={instance.args[name]}" for name in sizes)
    return f"checked, and timed, with {taken}: its own sizes take long; --args {whole} takes them"
