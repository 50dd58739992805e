"""The limits of a device that legality depends on, from its description file."""

from __future__ import annotations

from dataclasses import dataclass

from fusion.errors import FusionError, did_you_mean


@dataclass(frozen=True)
class Limits:
    """Bytes of each on-chip memory of a core (UB: of a Vector core), cores, and cross-core flags."""

    ub: int = 196_352
    l1: int = 524_032
    l0a: int = 65_536
    l0c: int = 131_072
    cube_cores: int = 20
    cross_flags: int = 11
    flag_depth: int = 15

    def memory(self, name: str) -> int:
        return {"ub": self.ub, "l1": self.l1, "l0c": self.l0c}[name]


DEVICES: dict[str, Limits] = {
    "910B1": Limits(cube_cores=24),
    "910B2": Limits(cube_cores=24),
    "910B3": Limits(),
    "910B4": Limits(),
}
"""What is known of each device; cores of all have the same memories."""


def limits_of(device: str) -> Limits:
    """The limits of a device by name. Raises FusionError with the closest names."""
    if device not in DEVICES:
        raise FusionError(f"no device {device!r}", remedy=did_you_mean(device, DEVICES))
    return DEVICES[device]
