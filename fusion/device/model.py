"""A device as the timeline and the cost model see it: named numbers in base units, each with its unit, source and uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from fusion.device.schema import ALL_KEYS, UNITS
from fusion.plan.device import Limits

UNSEEN = 0.25  # M: error of a calibrated timeline on kernels of other operators
UNCALIBRATED = 0.5  # I: public figures alone


@dataclass(frozen=True)
class Number:
    """One number as a device file gives it."""

    value: float
    unit: str
    source: str


@dataclass(frozen=True)
class Device:
    """All numbers of a device by key (`gm.latency`); `device[key]` is in the base unit: bytes, ns, bytes/ns, cycles, MHz.

    `interval` is the relative half width of a prediction, from calibration; 0 where the device was never calibrated.
    `calibrated` are the keys that a calibration has set, `measured` the operators whose kernels it was made with.
    """

    name: str
    numbers: Mapping[str, Number]
    interval: float = 0.0
    calibrated: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, tuple(self.numbers.items())))

    def __getitem__(self, key: str) -> float:
        return self._base[key]

    @cached_property
    def _base(self) -> dict[str, float]:
        return {k: n.value * UNITS[ALL_KEYS[k]][n.unit] for k, n in self.numbers.items()}

    @cached_property
    def ghz(self) -> float:
        return self["cores.clock"] / 1e3

    @cached_property
    def cube_cores(self) -> int:
        return int(self["cores.cube"])

    def interval_of(self, operator: str) -> float:
        """The relative half width of a prediction for kernels of this operator."""
        if operator in self.measured:
            return self.interval
        return max(self.interval, UNSEEN if self.calibrated else UNCALIBRATED)

    def ns(self, key: str) -> float:
        """Nanoseconds of a number given in cycles."""
        return self[key] / self.ghz

    @property
    def peak_tflops(self) -> float:
        """fp16 multiply and add of all Cube cores."""
        return 2.0 * self["cube.macs"] * self.cube_cores * self.ghz / 1e3

    @property
    def hbm_gb_s(self) -> float:
        return self["gm.hbm_rate"]

    def chip_rate(self, hit: float) -> float:
        """Bytes a nanosecond of all cores together: 1 / (h / L2 + (1 - h) / HBM)."""
        return 1.0 / (hit / self["gm.l2_rate"] + (1.0 - hit) / self["gm.hbm_rate"])

    def with_values(self, values: Mapping[str, float], source: str = "set by the caller") -> Device:
        """The same device with some numbers replaced, given in base units."""
        numbers = dict(self.numbers)
        for key, value in values.items():
            old = numbers[key]
            numbers[key] = Number(value / UNITS[ALL_KEYS[key]][old.unit], old.unit, source)
        return replace(self, numbers=numbers)

    def limits(self) -> Limits:
        """What the planner has to know."""
        sizes = {m: int(self[f"memory.{m}"]) for m in ("ub", "l1", "l0a", "l0c")}
        flags, depth = int(self["sync.cross_flags"]), int(self["sync.flag_depth"])
        return Limits(**sizes, cube_cores=self.cube_cores, cross_flags=flags, flag_depth=depth, device=self)
