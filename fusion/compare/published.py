"""Published latencies of hand-written kernels: `kernels/plans/OPERATOR.published.toml` beside the operator's plan files."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from fusion.calibrate import measured
from fusion.device import Device
from fusion.graph import StageGraph
from fusion.timeline.launch import time_launch

if sys.version_info >= (3, 11):
    import tomllib
else:  # pragma: no cover
    import tomli as tomllib  # pyright: ignore

FOLDER = files("kernels") / "plans"


@dataclass(frozen=True)
class Variant:
    """One hand-written variant: its number of kernels, what a device took for its launches in microseconds, and their outlines' labels."""

    kernels: int
    us: float
    launches: tuple[str, ...]

    def predicted_us(self, device: Device) -> float:
        """What the timeline says for the hand-written kernels."""
        return sum(time_launch(measured.kernel(label), device).us for label in self.launches)


@dataclass(frozen=True)
class Published:
    """The variants of an operator at one shape. `main` are the stages that the latencies are of."""

    operator: str
    device: str
    shape: dict[str, Any]
    main: frozenset[str]
    variants: dict[int, Variant]

    def is_shape_of(self, graph: StageGraph) -> bool:
        from kernels import load

        return graph == load(self.operator).build(**self.shape)


@lru_cache
def published(operator: str) -> Published | None:
    """What is published of an operator, if anything."""
    path = FOLDER / f"{operator}.published.toml"
    if not path.is_file():
        return None
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    variants = [Variant(int(v["kernels"]), float(v["us"]), tuple(v["launches"])) for v in table["variant"]]
    return Published(operator, table["device"], table["shape"], frozenset(table["main"]), {v.kernels: v for v in variants})
