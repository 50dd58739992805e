"""The hand-written GQA-sink backward variants whose latencies are published, as TileLang modules put together from phases.

What the published variants share: tiles of 64 x 64, one block per (head, tile of 64 queries), fp32 sums of dK and dV by atomic adds,
a second "compensating" product with the rounding error of P and dS, masks as whole tiles. What sets them apart is which phases share a
kernel, and how a tile goes from one unit to the other: `each` (GM, a tile for every iteration), `slot` (GM, one tile a block) or
`relay` (the compiler's own way). Both Vector cores do the same work where `vid` is not used; `threads=1` leaves one of them idle.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from fusion.toolchain import KernelSource

Way = Literal["each", "slot", "relay"]
TILES = {"s": "float", "p": "float16", "p_rest": "float16", "p_full": "float", "dp": "float", "ds": "float16", "ds_rest": "float16"}
CUBE_WIDTH = {"q": 128, "k": 128, "v": 128, "do": 128, "p": 64, "p_rest": 64, "ds": 64, "ds_rest": 64}
L0C = {"s": 64, "dp": 64, "dv": 128, "dk": 128, "dq": 128}


@dataclass(frozen=True)
class Shape:
    """The problem that was measured."""

    batch: int = 1
    heads: int = 64
    groups: int = 8
    seq_len: int = 4096
    window: int = 128

    @property
    def blocks(self) -> int:
        return self.batch * self.heads * self.seq_len // 64

    @property
    def iterations(self) -> int:
        return min(self.window // 64 + 1, self.seq_len // 64)


@dataclass(frozen=True)
class Variant:
    """One kernel: its phases, the way of tiles between its own phases, and how many Vector cores it is launched for."""

    name: str
    phases: tuple[str, ...]
    way: Way = "each"
    threads: int = 2
    combine: bool = True


SEPARATE = (
    Variant("k1_qk", ("qk",)),
    Variant("k2_softmax", ("softmax",), combine=False),
    Variant("k3_dv_dp", ("dv_dp",)),
    Variant("k4_ds", ("ds",), combine=False),
    Variant("k5_dk_dq", ("dk_dq",)),
)
QK_SOFTMAX = Variant("qk_softmax", ("qk", "softmax"))
VARIANTS: dict[int, tuple[Variant, ...]] = {
    9: SEPARATE,
    6: (QK_SOFTMAX, Variant("dv_dp_ds", ("dv_dp", "ds")), Variant("dk_dq", ("dk_dq",))),
    5: (QK_SOFTMAX, Variant("dv_dp_ds_dk_dq", ("dv_dp", "ds", "dk_dq"))),
    4: (Variant("bwd_main", ("qk", "softmax", "dv_dp", "ds", "dk_dq"), "slot"),),
    2: (Variant("bwd", ("delta", "qk", "softmax", "dv_dp", "ds", "dk_dq", "dsink"), "relay", 1),),
}

# reads and writes of tiles by phase; what is not made in the same kernel comes from GM, a tile for every iteration
READS = {"softmax": ("s",), "dv_dp": ("p", "p_rest"), "ds": ("p_full", "dp"), "dk_dq": ("ds", "ds_rest")}
WRITES = {"qk": ("s",), "softmax": ("p", "p_rest", "p_full"), "dv_dp": ("dp",), "ds": ("ds", "ds_rest")}
INPUTS = {"qk": ("Q", "K"), "dv_dp": ("dO", "V"), "dk_dq": ("Q", "K"), "delta": ("O", "dO"), "softmax": ("lse",), "ds": ("delta",),
          "dsink": ("sink", "lse")}  # fmt: skip
OUTPUTS = {"dv_dp": ("dV",), "dk_dq": ("dK", "dQ"), "delta": ("delta",), "dsink": ("dsink",)}


def _mask(rows: str, cols: str, tile: str, window: int) -> list[str]:
    # the published kernels join the two masks with a bitwise and, which takes as long as the second select here
    return [
        "T.tile.arith_progression(col_pos, kv, 1, 64)",
        f"T.tile.broadcast({cols}, col_pos, axis=0)",
        f"T.tile.broadcast({rows}, row_pos, axis=1)",
        f'T.tile.compare(mask, {cols}, {rows}, "LE")',
        f'T.tile.select({tile}, mask, {tile}, 0.0, "VSEL_TENSOR_SCALAR_MODE")',
        f"T.tile.sub({rows}, {rows}, {window})",
        f'T.tile.compare(mask, {cols}, {rows}, "GT")',
        f'T.tile.select({tile}, mask, {tile}, 0.0, "VSEL_TENSOR_SCALAR_MODE")',
    ]


class Module:
    """One kernel's module; `lines` are its loop body."""

    def __init__(self, variant: Variant, shape: Shape) -> None:
        self.variant, self.shape, self.phases = variant, shape, variant.phases
        self.made = {t for p in self.phases for t in WRITES.get(p, ())}
        self.read = {t for p in self.phases for t in READS.get(p, ())}
        self.lines: list[str] = []

    def has(self, *phases: str) -> bool:
        return any(p in self.phases for p in phases)

    # ---- ways of tiles

    def place(self, tile: str) -> str:
        one = self.inside(tile) and self.variant.way == "slot"
        return f"{self.buffer(tile)}[cid, :, :]" if one else f"{self.buffer(tile)}[cid, it, :, :]"

    def buffer(self, tile: str) -> str:
        """Only a tile that stays in the kernel may be called a workspace: the compiler synchronizes by that name."""
        return f"workspace_{tile}" if self.inside(tile) and tile != "p_full" else f"tiles_{tile}"

    def inside(self, tile: str) -> bool:
        return tile in self.made and tile in self.read

    def in_gm(self, tile: str) -> bool:
        if tile == "p_full":
            return not (self.has("softmax") and self.has("ds"))
        return not (self.inside(tile) and self.variant.way == "relay")

    def give(self, tile: str, source: str) -> list[str]:
        if tile == "p_full" and not self.in_gm(tile):
            return []
        return [f"T.copy({source}, {self.place(tile)})"] if self.in_gm(tile) else []

    def take(self, tile: str, target: str, source: str) -> list[str]:
        return [f"T.copy({self.place(tile) if self.in_gm(tile) else source}, {target})"]

    # ---- phases

    def qk(self) -> list[str]:
        return [
            "T.copy(K[bz, kv_head, kv : kv + 64, :], k_l1)",
            "T.gemm_v0(q_l1, k_l1, s_l0c, transpose_B=True, init=True)",
            *self.give("s", "s_l0c"),
        ]

    def softmax(self) -> list[str]:
        return [
            *self.take("s", "p_ub", "s_l0c"),
            "T.tile.fill(work_a, 0.0)",
            "T.tile.axpy(work_a, p_ub, 0.08838834764831845)",
            "T.tile.broadcast(p_ub, lse_ub, axis=1)",
            "T.tile.sub(work_a, work_a, p_ub)",
            "T.tile.exp(p_ub, work_a)",
            *_mask("work_b", "work_a", "p_ub", self.shape.window),
            *self.give("p_full", "p_ub"),
            "T.copy(p_ub, p_half)",
            *self.give("p", "p_half"),
            "T.copy(p_half, work_c)",
            "T.tile.sub(work_c, p_ub, work_c)",
            "T.copy(work_c, p_rest_half)",
            *self.give("p_rest", "p_rest_half"),
        ]

    def dv_dp(self) -> list[str]:
        return [
            *self.take("p", "p_l1", "p_half"),
            "T.gemm_v0(p_l1, do_l1, dv_l0c, transpose_A=True, init=True)",
            *self.take("p_rest", "p_rest_l1", "p_rest_half"),
            "T.gemm_v0(p_rest_l1, do_l1, dv_l0c, transpose_A=True, init=False)",
            "T.tile.atomic_add(dV[bz, kv_head, kv : kv + 64, :], dv_l0c)",
            "T.copy(V[bz, kv_head, kv : kv + 64, :], v_l1)",
            "T.gemm_v0(do_l1, v_l1, dp_l0c, transpose_B=True, init=True)",
            *self.give("dp", "dp_l0c"),
        ]

    def ds(self) -> list[str]:
        load = [] if self.has("softmax") else [f"T.copy({self.place('p_full')}, p_ub)"]
        return [
            *load,
            *self.take("dp", "dp_ub", "dp_l0c"),
            "T.tile.broadcast(work_d, delta_ub, axis=1)",
            "T.tile.sub(dp_ub, dp_ub, work_d)",
            "T.tile.mul(p_ub, p_ub, dp_ub)",
            "T.tile.mul(p_ub, p_ub, 0.08838834764831845)",
            *_mask("work_b", "work_d", "p_ub", self.shape.window),
            "T.copy(p_ub, ds_half)",
            *self.give("ds", "ds_half"),
            "T.copy(ds_half, work_f)",
            "T.tile.sub(work_e, p_ub, work_f)",
            "T.copy(work_e, ds_rest_half)",
            *self.give("ds_rest", "ds_rest_half"),
        ]

    def dk_dq(self) -> list[str]:
        return [
            *self.take("ds", "ds_l1", "ds_half"),
            "T.gemm_v0(ds_l1, q_l1, dk_l0c, transpose_A=True, init=True)",
            *self.take("ds_rest", "ds_rest_l1", "ds_rest_half"),
            "T.gemm_v0(ds_rest_l1, q_l1, dk_l0c, transpose_A=True, init=False)",
            "T.tile.atomic_add(dK[bz, kv_head, kv : kv + 64, :], dk_l0c)",
            "T.copy(K[bz, kv_head, kv : kv + 64, :], k_l1)",
            "T.gemm_v0(ds_l1, k_l1, dq_l0c, init=(k == first))",
            "T.gemm_v0(ds_rest_l1, k_l1, dq_l0c, init=False)",
        ]

    # ---- around the loop

    def before(self) -> list[str]:
        rows = "[bz, by, q_row : q_row + 64"
        lines = list[str]()
        if self.has("delta"):
            lines += [
                f"T.copy(O{rows}, :], o_half)",
                f"T.copy(dO{rows}, :], do_half)",
                "T.copy(o_half, o_full)",
                "T.copy(do_half, do_full)",
            ]
            lines += ["T.tile.mul(product, o_full, do_full)", "T.reduce_sum(product, delta_ub, dim=-1)", f"T.copy(delta_ub, delta{rows}])"]
        lines += [f"T.copy(Q{rows}, :], q_l1)"] if self.has("qk", "dk_dq") else []
        lines += [f"T.copy(dO{rows}, :], do_l1)"] if self.has("dv_dp") else []
        lines += [f"T.copy(delta{rows}], delta_ub)"] if self.has("ds") and not self.has("delta") else []
        lines += [f"T.copy(lse{rows}], lse_ub)"] if self.has("softmax") else []
        return [*lines, *(["T.tile.arith_progression(row_pos, q_row, 1, 64)"] if self.has("softmax", "ds") else [])]

    def after(self) -> list[str]:
        rows = "[bz, by, q_row : q_row + 64"
        lines = [f"T.copy(dq_l0c, dQ{rows}, :])"] if self.has("dk_dq") else []
        if self.has("dsink"):
            lines += ["T.copy(sink[by : by + 1], sink_one)", "T.tile.fill(sink_ub, sink_one[0])", "T.tile.sub(sink_exp, sink_ub, lse_ub)"]
            lines += ["T.tile.exp(sink_exp, sink_exp)", "T.tile.mul(sink_exp, sink_exp, delta_ub)", "T.tile.mul(sink_exp, sink_exp, -1.0)"]
            lines += [f"T.copy(sink_exp, dsink{rows}])"]
        return lines

    def params(self) -> list[str]:
        s = self.shape
        q, kv, row = [s.batch, s.heads, s.seq_len, 128], [s.batch, s.heads // s.groups, s.seq_len, 128], [s.batch, s.heads, s.seq_len]
        known = {"Q": (q, "float16"), "K": (kv, "float16"), "V": (kv, "float16"), "dO": (q, "float16"), "O": (q, "float16"),
                 "lse": (row, "float"), "delta": (row, "float"), "sink": ([s.heads], "float16"), "dQ": (q, "float16"),
                 "dK": (kv, "float"), "dV": (kv, "float"), "dsink": (row, "float")}  # fmt: skip
        names = dict.fromkeys(n for p in self.phases for n in (*INPUTS.get(p, ()), *OUTPUTS.get(p, ())))
        found = [f'{n}: T.Tensor({known[n][0]}, "{known[n][1]}"),' for n in names]
        for tile in TILES:
            if tile in self.made | self.read and self.in_gm(tile):
                slots = "" if self.inside(tile) and self.variant.way == "slot" else f"{s.iterations}, "
                found.append(f'{self.buffer(tile)}: T.Tensor([{s.blocks}, {slots}64, 64], "{TILES[tile]}"),')
        return found

    def buffers(self, used: str) -> list[str]:
        ub, l1 = ("alloc_shared", "alloc_shared") if self.variant.way == "relay" else ("alloc_ub", "alloc_L1")
        l0c = "alloc_fragment" if self.variant.way == "relay" else "alloc_L0C"
        found = [f'{n}_l1 = T.{l1}([64, {w}], "float16")' for n, w in CUBE_WIDTH.items()]
        found += [f'{n}_l0c = T.{l0c}([64, {w}], "float")' for n, w in L0C.items()]
        tiles = ("p_ub", "dp_ub", "work_a", "work_b", "work_c", "work_d", "work_e", "work_f")
        found += [f'{n} = T.{ub}([64, 64], "float")' for n in tiles]
        found += [f'mask = T.{ub}([64, 8], "uint8")']
        found += [f'{n} = T.{ub}([64, 64], "float16")' for n in ("p_half", "p_rest_half", "ds_half", "ds_rest_half")]
        found += [f'{n} = T.{ub}([64], "float")' for n in ("lse_ub", "delta_ub", "row_pos", "col_pos")]
        found += [f'{n} = T.alloc_ub([64, 128], "float16")' for n in ("o_half", "do_half")]
        found += [f'{n} = T.alloc_ub([64, 128], "float")' for n in ("o_full", "do_full", "product")]
        found += [f'{n} = T.alloc_ub([64], "float")' for n in ("sink_ub", "sink_exp")] + ['sink_one = T.alloc_ub([1], "float16")']
        return [f for f in found if f.split(" ")[0] in used]

    def text(self) -> str:
        s, v = self.shape, self.variant
        body = [line for phase in self.phases if hasattr(self, phase) for line in getattr(self, phase)()]
        before, after = self.before(), self.after()
        buffers = self.buffers(" ".join([*before, *body, *after]))
        flags = [("AUTO_CV_COMBINE", v.combine), ("AUTO_CV_SYNC", v.combine), ("AUTO_SYNC", True), ("MEMORY_PLANNING", True)]
        head = ["import tilelang", "import tilelang.language as T", "", "configs = {"]
        head += [f"    tilelang.PassConfigKey.TL_ASCEND_{n}: {on}," for n, on in flags]
        head += ["}", "", "", "@tilelang.jit(pass_configs=configs)", f"def {v.name}():", "    @T.prim_func", "    def main("]
        names = "(cid, vid)" if v.threads == 2 else "(cid)"
        threads = "" if v.threads == 2 else "threads=1, "
        start = [f"bx = cid % {s.seq_len // 64}", f"by = cid // {s.seq_len // 64} % {s.heads}", f"bz = cid // {s.blocks // s.batch}"]
        start += [f"kv_head = by // {s.groups}", f"first = T.max(0, bx - {s.window // 64})", "q_row = bx * 64"]
        lines = [*head, *_in(8, self.params()), "    ):", f"        with T.Kernel({s.blocks}, {threads}is_npu=True) as {names}:"]
        loop = ["for k in T.serial(first, bx + 1):", *_in(4, ["kv = k * 64", "it = k - first", *body])]
        return "\n".join([*lines, *_in(12, [*start, *buffers, *before, *loop, *after]), "", "    return main", ""])


def _in(spaces: int, lines: Iterable[str]) -> list[str]:
    return [" " * spaces + line for line in lines]


def sources(kernels: int, shape: Shape | None = None) -> list[KernelSource]:
    """The modules of a published variant, by its number of kernels (9, 6, 5, 4, 2): the main part of the backward."""
    return [KernelSource(v.name, Module(v, shape or Shape()).text()) for v in VARIANTS[kernels]]
