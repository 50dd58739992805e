"""What the host's own steps cost."""

from __future__ import annotations

from fusion.device import Device, load


def host_us(gm_bytes: int, device: Device | None = None) -> float:
    """A host step that reads or writes so many bytes of device memory: one torch operation and its traffic."""
    device = device or load()
    return device["launch.host_sync"] / 1e3 + gm_bytes / (device["gm.hbm_rate"] * 1e3)
