"""What the host's own steps cost."""

from __future__ import annotations

from collections.abc import Iterable

from fusion.device import Device, load
from fusion.graph import StageGraph


def stages_us(graph: StageGraph, stages: Iterable[str], device: Device | None) -> float:
    """Microseconds of the stages that the host runs, one after the other; None for the 910B3."""
    total = 0.0
    for stage in map(graph.stage, stages):
        touched = [graph.value(v) for v in (*stage.reads, *stage.writes)]
        total += host_us(sum(graph.size(v.dims) * v.itemsize for v in touched), device)
    return total


def host_us(gm_bytes: int, device: Device | None) -> float:
    """A host step that reads or writes so many bytes of device memory: one torch operation and its traffic."""
    device = device or load()
    return device["launch.host_sync"] / 1e3 + gm_bytes / (device["gm.hbm_rate"] * 1e3)
