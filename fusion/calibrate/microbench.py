"""Small TileLang kernels that tell the parameters of a device apart, with a script that times them on a machine with an NPU.

Each kernel repeats what one parameter is about; together their times form a well-conditioned system of equations (test).
"""

from __future__ import annotations

from dataclasses import dataclass

from fusion.toolchain import KernelSource

LOOPS = 64


@dataclass(frozen=True)
class Bench:
    """A kernel, the parameter that it is about, and its buffers (name, shape, dtype); the first is written."""

    name: str
    about: str
    blocks: int
    buffers: tuple[tuple[str, tuple[int, ...], str], ...]
    allocs: tuple[str, ...]
    before: tuple[str, ...]
    body: tuple[str, ...]
    after: tuple[str, ...] = ()
    loops: int = LOOPS
    threads: int = 2

    def source(self) -> KernelSource:
        """The TileLang module."""
        flags = ("AUTO_CV_COMBINE", "AUTO_CV_SYNC", "AUTO_SYNC", "MEMORY_PLANNING")
        lines = ["import tilelang", "import tilelang.language as T", "", f"# tells {self.about}", "configs = {"]
        lines += [*(f"    tilelang.PassConfigKey.TL_ASCEND_{f}: True," for f in flags), "}", "", "", "@tilelang.jit(pass_configs=configs)"]
        lines += [f"def {self.name}():", "    @T.prim_func", "    def main("]
        lines += [f'        {n}: T.Tensor({list(s)}, "{d}"),' for n, s, d in self.buffers]
        threads = "" if self.threads == 2 else "threads=1, "
        lines += [
            "    ):",
            f"        with T.Kernel({self.blocks}, {threads}is_npu=True) as {'(cid, vid)' if self.threads == 2 else '(cid)'}:",
        ]
        lines += [f"            {x}" for x in (*self.allocs, *self.before)]
        if self.body:
            lines += [f"            for i in T.serial({self.loops}):", *(f"                {x}" for x in self.body)]
        lines += [*(f"            {x}" for x in self.after), "", "    return main", ""]
        return KernelSource(self.name, "\n".join(lines))


def _ub(*named: tuple[str, str, str]) -> tuple[str, ...]:
    return tuple(f'{n} = T.alloc_ub({s}, "{d}")' for n, s, d in named)


def _rows(name: str, about: str, blocks: int, rows: int, distinct: bool = True) -> Bench:
    """Loads and stores tiles of `rows` x 128 fp16: other ones each time (HBM), or the same (L2)."""
    at = f"(cid * {LOOPS} + i) * {rows}" if distinct else f"cid * {rows}"
    total = rows * blocks * (LOOPS if distinct else 1)
    return Bench(
        name,
        about,
        blocks,
        (("Y", (blocks * rows, 128), "float16"), ("X", (total, 128), "float16")),
        _ub(("x", f"[{rows}, 128]", "float16"), ("y", f"[{rows}, 128]", "float16")),
        ("T.tile.fill(y, 0.0)",),
        (f"T.copy(X[{at} : {at} + {rows}, :], x)", "T.tile.add(y, y, x)"),
        (f"T.copy(y, Y[cid * {rows} : cid * {rows} + {rows}, :])",),
    )


def _chain(name: str, about: str, ops: int, rows: int, dtype: str = "float") -> Bench:
    """Dependent vector instructions on a tile, nothing else in the loop."""
    x = f"[{rows}, 64]"
    return Bench(
        name,
        about,
        20,
        (("Y", (20 * rows, 64), dtype),),
        _ub(("x", x, dtype), ("y", x, dtype)),
        ("T.tile.fill(x, 0.0)", "T.tile.fill(y, 1.0)"),
        ("T.tile.add(x, x, y)",) * ops,
        (f"T.copy(x, Y[cid * {rows} : cid * {rows} + {rows}, :])",),
    )


def benches() -> tuple[Bench, ...]:
    """One or two kernels a parameter."""
    tile = "cid * 64 : cid * 64 + 64, :"
    l1, l0c = 'T.alloc_L1([64, 128], "float16")', 'T.alloc_L0C([64, 64], "float")'
    cube = (f"a = {l1}", f"b = {l1}", f"c = {l0c}")
    wide = (f"a = {l1}", f"b = {l1}", 'c = T.alloc_L0C([128, 128], "float")')
    operands = (("A", (1280, 128), "float16"), ("B", (1280, 128), "float16"))
    load = (f"T.copy(A[{tile}], a)", f"T.copy(B[{tile}], b)")
    product = "T.gemm_v0(a, b, c, transpose_B=True, init=True)"
    atomics = "T.tile.atomic_add(Y[cid * 64 : cid * 64 + 64, :], c)"
    passed = (("Y", (1280, 64), "float"), ("workspace_c", (20, 64, 64), "float"), ("workspace_r", (20, 64, 64), "float16"), *operands)
    round_trip = (
        "T.gemm_v0(a, b, c, transpose_B=True, init=True)",
        "T.copy(c, workspace_c[cid, :, :])",
        "T.copy(workspace_c[cid, :, :], u)",
        "T.copy(u, h)",
        "T.copy(h, workspace_r[cid, :, :])",
        "T.copy(workspace_r[cid, :, :], r)",
        "T.gemm_v0(r, b, o, init=True)",
    )
    passing = (
        *cube,
        'r = T.alloc_L1([64, 64], "float16")',
        'o = T.alloc_L0C([64, 128], "float")',
        *_ub(("u", "[64, 64]", "float"), ("h", "[64, 64]", "float16")),
    )
    return (
        Bench(
            "empty_few",
            "launch.task",
            20,
            (("Y", (20, 64), "float"),),
            _ub(("x", "[1, 64]", "float")),
            ("T.tile.fill(x, 0.0)",),
            (),
            ("T.copy(x, Y[cid : cid + 1, :])",),
        ),
        Bench(
            "empty_many",
            "launch.block_start",
            4000,
            (("Y", (4000, 64), "float"),),
            _ub(("x", "[1, 64]", "float")),
            ("T.tile.fill(x, 0.0)",),
            (),
            ("T.copy(x, Y[cid : cid + 1, :])",),
        ),
        _rows("loads_short", "gm.latency", 20, 1, distinct=False),
        _rows("loads_long", "gm.vector_rate", 20, 128, distinct=False),
        _rows("loads_far", "gm.vector_rate against L2 misses", 20, 128),
        Bench(
            "stores_short",
            "gm.store_latency",
            20,
            (("Y", (20, 64), "float"),),
            _ub(("x", "[1, 64]", "float")),
            ("T.tile.fill(x, 0.0)",),
            ("T.tile.add(x, x, x)", "T.copy(x, Y[cid : cid + 1, :])"),
        ),
        Bench(
            "cube_loads",
            "gm.cube_rate",
            20,
            (("Y", (1280, 64), "float"), ("A", (1280, 1024), "float16"), ("B", (1280, 1024), "float16")),
            ('a = T.alloc_L1([64, 1024], "float16")', 'b = T.alloc_L1([64, 1024], "float16")', f"c = {l0c}"),
            (),
            load,
            (product, f"T.copy(c, Y[{tile}])"),
        ),
        Bench("cube_stores", "gm.fix_rate", 20, (("Y", (1280, 64), "float"), *operands), cube, load, (product, f"T.copy(c, Y[{tile}])")),
        Bench("cube_adds", "gm.atomic_factor", 20, (("Y", (1280, 64), "float"), *operands), cube, load, (product, atomics)),
        Bench("handoffs", "sync.cross_latency", 20, passed[1:], passing, load, round_trip),
        _chain("adds_small", "vector.start", 16, 1),
        _chain("adds_large", "vector.scale", 16, 64),
        Bench(
            "scalar_reads",
            "sync.drain",
            20,
            (("Y", (1280, 64), "float"),),
            _ub(("x", "[64, 64]", "float"), ("r", "[64]", "float")),
            ("T.tile.fill(x, 0.0)", "T.tile.fill(r, 1.0)"),
            ("for j, k in T.Parallel(64, 64):", "    x[j, k] = x[j, k] * r[j]"),
            (f"T.copy(x, Y[{tile}])",),
            loops=16,
        ),
        Bench(
            "scalar_factors",
            "sync.drain",
            20,
            (("Y", (1280, 64), "float"),),
            _ub(("x", "[64, 64]", "float"), ("r", "[64]", "float")),
            ("T.tile.fill(x, 0.0)", "T.tile.fill(r, 1.0)"),
            tuple(f"T.tile.mul(x, x, r[{i}])" for i in range(8)),
            (f"T.copy(x, Y[{tile}])",),
        ),
        Bench(
            "products",
            "cube.start",
            20,
            (("Y", (1280, 64), "float"), *operands),
            wide[:2] + cube[2:],
            load,
            (product,) * 4,
            (f"T.copy(c, Y[{tile}])",),
        ),
    )


RUNNER = '''"""Times every kernel of this folder on the first NPU: python run.py > measured.csv, then fusion-plan calibrate measured.csv."""

import importlib.util
import json
import statistics
from pathlib import Path

import torch
import torch_npu  # noqa: F401

REPEATS = 50


def times(function, arguments):
    for _ in range(5):
        function(*arguments)
    torch.npu.synchronize()
    found = []
    for _ in range(REPEATS):
        start, end = torch.npu.Event(enable_timing=True), torch.npu.Event(enable_timing=True)
        start.record()
        function(*arguments)
        end.record()
        torch.npu.synchronize()
        found.append(start.elapsed_time(end) * 1e3)
    return statistics.median(found)


def main():
    print("label,launches,us")
    here = Path(__file__).parent
    for bench in json.loads((here / "benches.json").read_text()):
        spec = importlib.util.spec_from_file_location(bench["name"], here / f"{bench['name']}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        named = {"float": torch.float32, "float16": torch.float16}
        arguments = [torch.zeros(shape, dtype=named[dtype], device="npu") for _, shape, dtype in bench["buffers"]]
        us = times(getattr(module, bench["name"])(), arguments)
        print(f"{bench['name']},bench/{bench['name']},{us:.2f}", flush=True)


main()
'''
