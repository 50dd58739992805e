"""The table of a plan's kernels for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from fusion import words
from fusion.output.summary import HandoffSummary, KernelSummary, Summary

ARROWS = {"cube->vector": "C→V", "vector->cube": "V→C"}
LEAST_WIDTH = 140  # where the output goes to a file or pipe


def console() -> Console:
    """Standard output, wide enough for the table where it is no terminal."""
    plain = Console(highlight=False, markup=False)
    return plain if plain.is_terminal else Console(highlight=False, markup=False, width=LEAST_WIDTH)


def table(summary: Summary) -> Table:
    """One row a kernel."""
    made = Table(show_lines=True)
    for name in ("kernel: stages", "grid, loops", "on-chip bytes of capacity", "handoffs (slots, flag)"):
        made.add_column(name, overflow="fold")
    made.add_column("GM workspace", justify="right")
    made.add_column("est. us", justify="right")
    for k in summary.kernels:
        made.add_row(
            _kernel(k), _spread(k), _memories(k), "\n".join(map(handoff_text, k.handoffs)) or "-", size(k.workspace_bytes), _cost(k)
        )
    return made


def title(summary: Summary) -> str:
    """What is planned."""
    tiles = " ".join(f"{d}={t}" for d, t in summary.plan.tiles)
    count = len(summary.kernels)
    return f"{summary.plan.graph.name} in {words.count(count, 'kernel')} on {summary.plan.device}, tiles {tiles}"


def totals(summary: Summary) -> str:
    """The numbers of the whole plan."""
    host = f"; host runs {' '.join(summary.plan.host_stages)}" if summary.plan.host_stages else ""
    syncs = words.count(summary.host_syncs, "host sync")
    return (
        f"{summary.total_us:.0f} us ±{100 * summary.interval:.0f} % estimated, {syncs}, {size(summary.between_bytes)} between kernels{host}"
    )


def _kernel(k: KernelSummary) -> str:
    return f"{k.kernel.name}:\n{' '.join(k.kernel.stages)}"


def _spread(k: KernelSummary) -> str:
    blocks = words.count(k.blocks, f"{'persistent ' if k.kernel.persistent else ''}block")
    loops = f"loop {' '.join(k.kernel.loops)}" if k.kernel.loops else "no loop"
    return f"{' '.join(k.kernel.grid) or 'one task'}\n{blocks}\n{loops}"


def _memories(k: KernelSummary) -> str:
    return "\n".join(f"{m.memory.upper():<3} {m.used:>7,} of {m.limit:,}" for m in k.memories)


def _cost(k: KernelSummary) -> str:
    return f"{k.cost_us:.0f}\n{k.bottleneck}"


def handoff_text(h: HandoffSummary) -> str:
    """`workspace_s C→V 1 slot, flag 0`."""
    slots = "slot each" if h.handoff.slots == 0 else words.count(h.handoff.slots, "slot")
    free = f", freed by flag {_id(h.free_flag)}" if h.handoff.free else ""
    relay = " (relay)" if h.handoff.kind == "relay" else ""
    return f"{h.handoff.name}{relay} {ARROWS[h.handoff.direction]} {slots}, flag {_id(h.flag)}{free}"


def _id(flag: int | None) -> str:
    return "-" if flag is None else str(flag)


def size(count: int) -> str:
    """Bytes with a unit that keeps the number short."""
    for unit, scale in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} B"
