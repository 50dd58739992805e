# pyright: basic, reportMissingImports=false
"""Lower one small Cube-and-Vector kernel before serving: the forked jobs then start with warm code and loaded modules."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

KERNEL = """
import tilelang
import tilelang.language as T


@tilelang.jit(pass_configs=CONFIGS)
def warm():
    @T.prim_func
    def main(
        A: T.Tensor((128, 64), "float16"),
        B: T.Tensor((64, 64), "float16"),
        workspace_s: T.Tensor((2, 64, 64), "float"),
        C: T.Tensor((128, 64), "float"),
    ):
        with T.Kernel(2, is_npu=True) as (cid, vid):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float")
            s = T.alloc_shared((32, 64), "float")
            r = T.alloc_shared((32,), "float")
            T.copy(B[0:64, 0:64], b)
            for i in T.serial(2):
                T.copy(A[cid * 64, 0], a)
                T.gemm_v0(a, b, c, init=(i == 0))
            T.copy(c, workspace_s[cid, 0:64, 0:64])
            T.copy(workspace_s[cid, vid * 32 : vid * 32 + 32, 0:64], s)
            T.reduce_sum(s, r, dim=1)
            for i, j in T.Parallel(32, 64):
                s[i, j] = s[i, j] + r[i]
            T.copy(s, C[cid * 64 + vid * 32 : cid * 64 + vid * 32 + 32, 0:64])

    return main
"""


def lower_once(folder: Path) -> str:
    """Import the compiler, lower the kernel for both targets, and return the compiler's version."""
    import tilelang
    from tilelang.engine.lower import lower
    from tvm.ir.transform import PassContext

    from . import frontend

    path = folder / "warm.py"
    path.write_text(KERNEL.replace("CONFIGS", repr(frontend.DEVELOPER_MODE)), encoding="utf-8")
    for target in ("ascendc", "pto"):
        built = frontend.build(path, "warm", "", {})
        with PassContext(opt_level=3, config=built.pass_configs()):
            artifact = lower(built.func, target=target, platform="A2")
        artifact.device_mod.script()
    return str(tilelang.__version__)


def warm(folder: Path) -> None:
    """As `lower_once`; a failure is only logged, since the jobs will tell it better."""
    try:
        lower_once(folder)
    except Exception:
        traceback.print_exc(file=sys.stderr)
