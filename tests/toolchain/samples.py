"""The kernels of this folder as inputs of `lower`."""

from __future__ import annotations

from pathlib import Path

from fusion import toolchain
from fusion.toolchain import Lowered

KERNELS = Path(__file__).parent / "kernels"


def kernel_text(name: str) -> str:
    """The source of one of this folder's kernels."""
    return (KERNELS / f"{name}.py").read_text(encoding="utf-8")


def kernel(name: str) -> toolchain.KernelSource:
    return toolchain.KernelSource(name, kernel_text(name))


def lower_one(source: toolchain.KernelSource, *passes: toolchain.TirPass, print_after: tuple[str, ...] = ()) -> Lowered:
    (lowered,) = toolchain.lower([source], tir_passes=passes, print_after=print_after)
    return lowered
