"""Speed of the simulator: build of one kernel, a flash-attention forward with and without order checking, cost per block, memory.

    python benchmarks/simulator.py

Prints one line per target; exits 1 if one is missed.
"""

from __future__ import annotations

import re
import resource
import sys
import time
from pathlib import Path

import numpy as np

from fusion.simulator import Buffer, run_kernel
from fusion.simulator.build import runtime_object
from fusion.toolchain import KernelSource, lower

KERNELS = Path(__file__).parent.parent / "tests/simulator/kernels"


def lowered(heads: int, seq: int, dim: int) -> str:
    text = re.sub(r"heads=\d+, seq=\d+, dim=\d+", f"heads={heads}, seq={seq}, dim={dim}", (KERNELS / "flash_attention.py").read_text())
    (result,) = lower([KernelSource("flash_attention", text)], ("ascendc",))
    assert result.ascendc, result.error
    return result.ascendc


def attention_buffers(heads: int, seq: int, dim: int) -> list[Buffer]:
    random = np.random.default_rng(0)
    blocks = heads * seq // 64
    inputs = [Buffer(n, "float16", (heads, seq, dim), random.standard_normal((heads, seq, dim)).astype(np.float16)) for n in "QKV"]
    return [
        *inputs,
        Buffer("O", "float16", (heads, seq, dim), role="out"),
        Buffer("workspace_1", "float32", (blocks, 64, 64), role="workspace"),
        Buffer("workspace_2", "float16", (blocks, 64, 64), role="workspace"),
        Buffer("workspace_3", "float32", (blocks, 64, dim), role="workspace"),
    ]


def best(text: str, buffers: list[Buffer], order: bool, repeats: int = 5) -> float:
    return min(run_kernel(text, "flash", buffers, order=order).seconds for _ in range(repeats))


def line(what: str, value: float, limit: float, unit: str) -> bool:
    good = value <= limit
    print(f"{what:60s} {value:8.3f} {unit:4s} (limit {limit:g}) {'ok' if good else 'MISSED'}")
    return good


def main() -> int:
    text = lowered(2, 512, 512)
    buffers = attention_buffers(2, 512, 512)
    runtime_object()
    run_kernel(lowered(2, 128, 64), "warm", attention_buffers(2, 128, 64))  # the precompiled header is shared by all kernels
    fresh = text + f"// {time.time()}\n"
    good = [line("build of one kernel, header and runtime in the cache", run_kernel(fresh, "flash", buffers).build_seconds, 4.0, "s")]
    good.append(line("flash attention S=512 D=512, 16 blocks, order checked", best(text, buffers, True), 0.3, "s"))
    print(f"{'the same without order':60s} {best(text, buffers, False):8.3f} s")
    few, many = (best(lowered(h, 256, 64), attention_buffers(h, 256, 64), True) / (h * 4) for h in (4, 32))
    good.append(line("cost per block, 128 blocks against 16", many / few, 1.3, "x"))
    good.append(line("memory of the largest run", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20, 1.0, "GiB"))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
