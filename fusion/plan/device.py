"""What the planner has to know of a device: the limits that legality depends on, and the description that costs are worked out from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusion.device import Device  # device descriptions know Limits


@dataclass(frozen=True)
class Limits:
    """Bytes of each on-chip memory of a core (UB: of a Vector core), cores, and cross-core flags.

    `device` has the numbers that estimates take; None stands for the 910B3's.
    """

    ub: int = 196_352
    l1: int = 524_032
    l0a: int = 65_536
    l0c: int = 131_072
    cube_cores: int = 20
    cross_flags: int = 11
    flag_depth: int = 15
    device: Device | None = None

    def memory(self, name: str) -> int:
        return {"ub": self.ub, "l1": self.l1, "l0c": self.l0c}[name]


def limits_of(device: str) -> Limits:
    """The limits of a device by its name or the path of its file. Raises FusionError with the closest names."""
    from fusion.device import load

    return load(device).limits()
