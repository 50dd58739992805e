"""The JSON object of a plan, for machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from fusion.output.summary import HandoffSummary, KernelSummary, Summary


def report(
    summary: Summary,
    paths: Iterable[Path],
    why: Iterable[str],
    refusals: Iterable[str] = (),
    timings: Mapping[str, float] | None = None,
    missing: str = "",
) -> dict[str, object]:
    """`operator`, `target`, `kernels` and all else that the table shows. `paths` are the files written."""
    files = tuple(paths)
    folder = next((p.parent for p in files if p.name == "plan.json"), None)
    return {
        "operator": summary.plan.graph.name,
        "target": len(summary.kernels),
        "device": summary.plan.device,
        "tiles": dict(summary.plan.tiles),
        "kernels": [_kernel(k, folder, files) for k in summary.kernels],
        "host_stages": list(summary.plan.host_stages),
        "host_syncs": summary.host_syncs,
        "host_us": round(summary.host_us, 3),
        "cost_us": round(summary.total_us, 3),
        "interval": round(summary.interval, 3),
        "workspace_bytes": summary.workspace_bytes,
        "between_kernels_bytes": summary.between_bytes,
        "why": list(why),
        "refusals": list(refusals),
        "pass_seconds": dict(timings or {}),
        "compiler_missing": missing or None,
        "folder": str(folder) if folder else None,
        "files": [str(p) for p in files],
    }


def _kernel(k: KernelSummary, folder: Path | None, files: tuple[Path, ...]) -> dict[str, object]:
    def path(inside: str) -> str | None:
        return str(folder / inside) if folder and folder / inside in files else None

    name = k.kernel.name
    return {
        "name": name,
        "stages": list(k.kernel.stages),
        "grid": list(k.kernel.grid),
        "loops": list(k.kernel.loops),
        "blocks": k.blocks,
        "persistent": k.kernel.persistent,
        "threads": k.kernel.threads,
        "on_chip": {m.memory: {"bytes": m.used, "capacity": m.limit} for m in k.memories},
        "handoffs": [_handoff(h) for h in k.handoffs],
        "placements": {p.value: p.memory for p in k.kernel.placements},
        "workspace_bytes": k.workspace_bytes,
        "cost_us": round(k.cost_us, 3),
        "bottleneck": k.bottleneck,
        "source": path(f"kernels/{name}.py"),
        "tir": path(f"tir/{name}.py"),
        "ascendc": path(f"ascendc/{name}.cpp"),
        "pto": path(f"pto/{name}.cpp"),
    }


def _handoff(h: HandoffSummary) -> dict[str, object]:
    return {
        "value": h.handoff.value,
        "name": h.handoff.name,
        "direction": h.handoff.direction,
        "kind": h.handoff.kind,
        "level": h.handoff.level,
        "slots": h.handoff.slots,
        "free": h.handoff.free,
        "flag": h.flag,
        "free_flag": h.free_flag,
    }
