"""The published latencies, with the kernels that they belong to."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fusion.calibrate.fit import Row
from fusion.calibrate.handwritten import VARIANTS, Shape, sources
from fusion.calibrate.tables import read_ours
from fusion.errors import FusionError, did_you_mean
from fusion.timeline import store
from fusion.timeline.record import Outline, buffers_of, outline
from fusion.toolchain import lower

DATA = Path(__file__).parent / "data"
MEASURED = DATA / "measured_910b3.csv"
OPERATOR = "gqa_sink_bwd"
"""What the hand-written kernels are of."""


def shipped(label: str) -> Path:
    """The file of a hand-written kernel's outline by its label, `6/dk_dq`."""
    return DATA / f"{label.replace('/', '_')}.npz"


def labels() -> tuple[str, ...]:
    """Labels of all hand-written kernels, `variant/kernel`; the 5-kernel variant shares its first kernel with the 6-kernel one."""
    return tuple(f"{n}/{v.name}" for n, variants in VARIANTS.items() for v in variants)


def kernel(label: str) -> Outline:
    """The outline of a hand-written kernel at the measured shape, as shipped. Raises FusionError for an unknown label."""
    path = shipped(label)
    if not path.exists():
        raise FusionError(f"no kernel {label!r}", where="launches", remedy=did_you_mean(label, labels()))
    return store.load(path)


def rows() -> list[Row]:
    """The published rows, ready to be fitted."""
    return [Row(m.label, m.us, tuple(kernel(k) for k in m.launches), OPERATOR) for m in read_ours(MEASURED)]


def record(numbers: Iterable[int] = tuple(VARIANTS), shape: Shape | None = None) -> dict[str, Outline]:
    """Lowers and outlines the hand-written kernels anew (needs the compiler)."""
    found: dict[str, Outline] = {}
    for number in numbers:
        for lowered in lower(sources(number, shape)):
            if lowered.error or not lowered.ascendc:
                raise FusionError(lowered.error.message if lowered.error else "not lowered", where=f"{number}/{lowered.name}")
            found[f"{number}/{lowered.name}"] = outline(lowered.ascendc, lowered.name, buffers_of(lowered))
    return found
