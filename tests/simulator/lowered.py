"""Kernels of tests/simulator/kernels, lowered by the real compiler and run with random inputs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np

from fusion.simulator import Buffer, KernelRun, run_kernel
from fusion.toolchain import KernelSource, lower

HERE = Path(__file__).parent / "kernels"
NP = {"float16": np.float16, "bfloat16": np.float32, "float32": np.float32, "int8": np.int8, "int32": np.int32}
Spec = tuple[str, tuple[int, ...], str]


@cache
def ascendc(name: str, *replacements: tuple[str, str]) -> str:
    text = (HERE / f"{name}.py").read_text()
    for old, new in replacements:
        text = text.replace(old, new)
    (result,) = lower([KernelSource(name, text)], ("ascendc",))
    assert result.ascendc, result.error
    return result.ascendc


def buffers(specs: Mapping[str, Spec], seed: int = 0, scale: float = 1.0) -> list[Buffer]:
    """name -> (dtype, shape, role); inputs are normal numbers already rounded to their dtype, 'inout' starts at zero."""
    random = np.random.default_rng(seed)
    made: list[Buffer] = []
    for name, (dtype, shape, role) in specs.items():
        data = None
        if role == "in":
            numbers = random.integers(-8, 8, shape) if "int" in dtype else random.standard_normal(shape) * scale
            data = numbers.astype(NP[dtype])
            data = (data.view(np.uint32) & 0xFFFF0000).view(np.float32) if dtype == "bfloat16" else data
        elif role == "inout":
            data = np.zeros(shape, NP[dtype])
        made.append(Buffer(name, dtype, shape, data, role))  # pyright: ignore[reportArgumentType]
    return made


def values(made: list[Buffer]) -> dict[str, np.ndarray]:
    return {b.name: np.asarray(b.data).astype(np.float64) for b in made if b.data is not None}


def run(name: str, made: list[Buffer], **options: object) -> KernelRun:
    return run_kernel(ascendc(name), name, made, **options)  # pyright: ignore[reportArgumentType]


CASES: dict[str, dict[str, Spec]] = {
    "matmul_add": {"A": ("float16", (128, 64), "in"), "B": ("float16", (64, 64), "in"), "D": ("float32", (128, 64), "in"),
                   "C": ("float32", (128, 64), "out"), "workspace_1": ("float32", (2, 64, 64), "workspace")},
    "cyclic_loop": {"Q": ("float16", (64, 64), "in"), "K": ("float16", (256, 64), "in"),
                    "workspace_1": ("float32", (1, 64, 64), "workspace"), "workspace_2": ("float16", (1, 64, 64), "workspace"),
                    "O": ("float32", (64, 64), "out")},
    "one_way_loop": {"A": ("float16", (512, 64), "in"), "B": ("float16", (64, 64), "in"), "C": ("float32", (512, 64), "out"),
                     "workspace_1": ("float32", (1, 64, 64), "workspace")},
    "guarded_producer": {"A": ("float16", (256, 64), "in"), "B": ("float16", (64, 64), "in"),
                         "workspace_1": ("float32", (4, 64, 64), "workspace"), "O": ("float32", (256, 64), "out")},
    "scratch_not_workspace": {"A": ("float16", (128, 64), "in"), "B": ("float16", (64, 64), "in"),
                              "scratch": ("float16", (1, 128, 64), "workspace"), "C": ("float32", (128, 64), "out")},
    "k_tail_200": {"A": ("float16", (64, 200), "in"), "B": ("float16", (200, 128), "in"), "C": ("float32", (64, 128), "out")},
    "broadcast_reload": {"A": ("float16", (64, 64), "in"), "B": ("float16", (64, 64), "in"), "R": ("float32", (64,), "in"),
                         "C": ("float32", (64, 64), "out"), "workspace_1": ("float32", (1, 64, 64), "workspace")},
    "flash_attention": {"Q": ("float16", (2, 128, 64), "in"), "K": ("float16", (2, 128, 64), "in"), "V": ("float16", (2, 128, 64), "in"),
                        "O": ("float16", (2, 128, 64), "out"), "workspace_1": ("float32", (4, 64, 64), "workspace"),
                        "workspace_2": ("float16", (4, 64, 64), "workspace"), "workspace_3": ("float32", (4, 64, 64), "workspace")},
    "gemm_bf16": {"A": ("bfloat16", (64, 192), "in"), "B": ("bfloat16", (192, 64), "in"), "C": ("bfloat16", (64, 64), "out")},
    "gemm_int8": {"A": ("int8", (64, 128), "in"), "B": ("int8", (128, 64), "in"), "C": ("int32", (64, 64), "out")},
    "gemm_float32": {"A": ("float32", (64, 128), "in"), "B": ("float32", (64, 128), "in"), "C": ("float32", (64, 64), "out")},
    "gemm_atomic": {"A": ("float16", (128, 64), "in"), "B": ("float16", (128, 64), "in"), "C": ("float32", (64, 64), "inout")},
}  # fmt: skip
