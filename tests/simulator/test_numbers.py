"""Numbers of single instructions against numpy and torch, rounding included."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fusion.simulator import Buffer, KernelRun, run_kernel
from tests.simulator.handwritten import map_kernel

N = 256
NP = {
    "half": np.float16,
    "float": np.float32,
    "int32_t": np.int32,
    "int16_t": np.int16,
    "uint8_t": np.uint8,
    "uint32_t": np.uint32,
    "int8_t": np.int8,
}
NAMES = {"half": "float16", "float": "float32", "bfloat16_t": "bfloat16", "int32_t": "int32", "int16_t": "int16", "uint8_t": "uint8",
         "uint32_t": "uint32", "int8_t": "int8"}  # fmt: skip


def run(
    inputs: dict[str, tuple[str, np.ndarray]], output: tuple[str, int], body: str, scratch: dict[str, tuple[str, int]] | None = None
) -> np.ndarray:
    """Runs the body over the inputs; every run must also be clean."""
    text = map_kernel({name: (ctype, data.size) for name, (ctype, data) in inputs.items()}, output, body, scratch)
    buffers = [Buffer(name, NAMES[ctype], data.shape, data) for name, (ctype, data) in inputs.items()]
    done: KernelRun = run_kernel(text, "test", [*buffers, Buffer("OUT", NAMES[output[0]], (output[1],), role="out")])
    assert not done.errors, "\n".join(map(str, done.errors))
    return done.outputs["OUT"]


def values(ctype: str, seed: int = 0, scale: float = 4.0) -> np.ndarray:
    data = np.random.default_rng(seed).standard_normal(N) * scale
    return np.rint(data * 100).astype(NP[ctype]) if "int" in ctype else data.astype(NP[ctype])


def test_elementwise_chain_in_one_kernel_per_dtype() -> None:
    """Add, Sub, Mul, Max, Min: each result is the exact one rounded once to the tensor's dtype."""
    for ctype in ("half", "float", "int32_t", "int16_t"):
        a, b = values(ctype, 1), values(ctype, 2)
        body = f"""AscendC::Add(out, a, b, {N});
AscendC::Sub(out[{N}], a, b, {N});
AscendC::Mul(out[{2 * N}], a, b, {N});
AscendC::Max(out[{3 * N}], a, b, {N});
AscendC::Min(out[{4 * N}], a, b, {N});
AscendC::Adds(out[{5 * N}], a, 3, {N});
AscendC::Muls(out[{6 * N}], a, 2, {N});"""
        got = run({"A": (ctype, a), "B": (ctype, b)}, (ctype, 7 * N), body).reshape(7, N)
        with np.errstate(over="ignore"):
            want = [a + b, a - b, a * b, np.maximum(a, b), np.minimum(a, b), a + NP[ctype](3), a * NP[ctype](2)]
        for row, expected in zip(got, want, strict=True):
            np.testing.assert_array_equal(row, expected.astype(NP[ctype]))


@pytest.mark.parametrize("ctype", ["half", "float"])
def test_functions(ctype: str) -> None:
    a = np.abs(values(ctype, 3, 1.0)) + NP[ctype](0.1)
    b = values(ctype, 4, 1.0)
    names = ["Exp", "Ln", "Abs", "Reciprocal", "Sqrt", "Rsqrt", "Relu"]
    body = "\n".join(f"AscendC::{name}(out[{i * N}], a, {N});" for i, name in enumerate(names))
    body += f"\nAscendC::Div(out[{7 * N}], b, a, {N});\nAscendC::LeakyRelu(out[{8 * N}], b, {ctype}(0.5f), {N});"
    got = run({"A": (ctype, a), "B": (ctype, b)}, (ctype, 9 * N), body).reshape(9, N)
    x, y = a.astype(np.float64), b.astype(np.float64)
    want = [np.exp(x), np.log(x), np.abs(x), 1 / x, np.sqrt(x), 1 / np.sqrt(x), np.maximum(x, 0), y / x, np.where(y >= 0, y, 0.5 * y)]
    for row, expected in zip(got, want, strict=True):
        np.testing.assert_allclose(
            row.astype(np.float64), expected, rtol=1e-3 if ctype == "half" else 3e-7, atol=1e-3 if ctype == "half" else 1e-6
        )


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_casts_round_as_asked() -> None:
    """float -> half, bfloat16, int32 in every rounding mode; ties, halves of the last place, overflow and denormals included."""
    exact = np.array(
        [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 1e-8, 6e-8, -6e-8, 65519.0, 65520.0, 70000.0, -70000.0, np.inf, 1 + 2**-11, 1 + 3 * 2**-11],
        np.float32,
    )
    a = np.concatenate([exact, values("float", 5)[: N - exact.size]])
    body = [
        f"AscendC::Cast(h{mode}, a, AscendC::RoundMode::CAST_{mode}, {N});\nAscendC::DataCopy(out[{i * N}], h{mode}, {N});"
        for i, mode in enumerate(MODES)
    ]
    scratch = {f"h{mode}": ("half", N) for mode in MODES}
    got = run({"A": ("float", a)}, ("half", len(MODES) * N), "\n".join(body), scratch).reshape(len(MODES), N)
    np.testing.assert_array_equal(got[0], a.astype(np.float16))
    for row, mode in zip(got, MODES, strict=True):
        np.testing.assert_array_equal(row.view(np.uint16), directed(a, mode).view(np.uint16), err_msg=mode)


MODES = ["RINT", "FLOOR", "CEIL", "TRUNC", "ROUND", "ODD"]


def directed(a: np.ndarray, mode: str) -> np.ndarray:
    """float32 -> float16 in a rounding mode, from the two neighbours of each value."""
    x = a.astype(np.float64)
    near = a.astype(np.float16)
    down = np.where(near.astype(np.float64) > x, np.nextafter(near, np.float16(-np.inf)), near)
    up = np.where(near.astype(np.float64) < x, np.nextafter(near, np.float16(np.inf)), near)
    zero = np.where(x >= 0, down, up)
    if mode == "ROUND":
        away = np.where(x >= 0, up, down)
        tie = (x - down.astype(np.float64)) == (up.astype(np.float64) - x)
        return np.where(tie & np.isfinite(up) & np.isfinite(down), away, near).astype(np.float16)
    if mode == "ODD":
        exact = near.astype(np.float64) == x
        odd = np.where(down.view(np.uint16) & 1, down, up)
        return np.where(exact, near, np.where(np.isinf(up) | np.isinf(down), zero, odd)).astype(np.float16)
    return {"RINT": near, "FLOOR": down, "CEIL": up, "TRUNC": zero}[mode].astype(np.float16)


def test_bfloat16_rounds_to_nearest_even_like_torch() -> None:
    a = np.concatenate([values("float", 6, 100.0)[: N - 4], np.array([1 + 2**-8, 1 + 3 * 2**-8, 3.4e38, -np.inf], np.float32)])
    got = run({"A": ("float", a)}, ("bfloat16_t", N), f"AscendC::Cast(out, a, AscendC::RoundMode::CAST_RINT, {N});")
    np.testing.assert_array_equal(got, torch.from_numpy(a).bfloat16().float().numpy())


def test_float_to_integer_saturates() -> None:
    a = np.concatenate([np.array([0.5, 1.5, -0.5, -2.5, 3e9, -3e9, 1e20], np.float32), values("float", 7)[: N - 7]])
    got = run({"A": ("float", a)}, ("int32_t", N), f"AscendC::Cast(out, a, AscendC::RoundMode::CAST_RINT, {N});")
    np.testing.assert_array_equal(got, np.clip(np.rint(a.astype(np.float64)), -(2**31), 2**31 - 1).astype(np.int32))


def test_compare_and_select() -> None:
    a, b = values("float", 8), values("float", 9)
    body = f"""AscendC::Compare(m, a, b, AscendC::CMPMODE::GT, {N});
AscendC::Select(out, m, a, b, AscendC::SELMODE::VSEL_TENSOR_TENSOR_MODE, {N});
AscendC::CompareScalar(m, a, 0.0f, AscendC::CMPMODE::LE, {N});
AscendC::Select(out[{N}], m, a, -1.0f, AscendC::SELMODE::VSEL_TENSOR_SCALAR_MODE, {N});"""
    got = run({"A": ("float", a), "B": ("float", b)}, ("float", 2 * N), body, {"m": ("uint8_t", N)}).reshape(2, N)
    np.testing.assert_array_equal(got[0], np.maximum(a, b))
    np.testing.assert_array_equal(got[1], np.where(a <= 0, a, np.float32(-1)))


def test_masks_and_strides() -> None:
    """A lane mask leaves the other lanes alone; block stride 0 repeats one block of the operand."""
    a, b = values("float", 10), values("float", 11)
    body = f"""AscendC::Duplicate(out, 0.0f, {N});
AscendC::Mul(out, a, b, (uint64_t)20, (uint8_t)4, AscendC::BinaryRepeatParams(1, 1, 0, 8, 8, 1));"""
    got = run({"A": ("float", a), "B": ("float", b)}, ("float", N), body).reshape(4, 64)
    want = np.zeros((4, 64), np.float32)
    for repeat in range(4):
        want[repeat, :20] = a.reshape(4, 64)[repeat, :20] * np.tile(b[repeat * 8 : repeat * 8 + 8], 8)[:20]
    np.testing.assert_array_equal(got, want)


def test_reductions() -> None:
    a = values("float", 12).reshape(4, 64)
    body = """uint32_t shape[] = {4, 64};
AscendC::ReduceSum<float, AscendC::Pattern::Reduce::AR>(out, a, tmp, shape, true);
AscendC::ReduceMax<float, AscendC::Pattern::Reduce::AR>(out[8], a, tmp, shape, true);
AscendC::ReduceSum<float, AscendC::Pattern::Reduce::RA>(out[64], a, tmp, shape, true);
AscendC::WholeReduceMax(out[16], a, 64, 4, 1, 1, 8, AscendC::ReduceOrder::ORDER_ONLY_VALUE);
AscendC::BlockReduceMin(out[128], a, 4, 64, 1, 1, 8);
AscendC::WholeReduceMax(out[24], a, 64, 4, 1, 1, 8, AscendC::ReduceOrder::ORDER_VALUE_INDEX);"""
    body = "AscendC::Duplicate(out, 0.0f, 256);\n" + body
    got = run({"A": ("float", a.reshape(-1))}, ("float", 256), body, {"tmp": ("uint8_t", 4096)})
    np.testing.assert_allclose(got[:4], a.astype(np.float64).sum(1), rtol=1e-6, atol=1e-5)
    np.testing.assert_array_equal(got[8:12], a.max(1))
    np.testing.assert_allclose(got[64:128], a.astype(np.float64).sum(0), rtol=1e-6, atol=1e-5)
    np.testing.assert_array_equal(got[16:20], a.max(1))
    np.testing.assert_array_equal(got[128:160], a.reshape(32, 8).min(1))
    np.testing.assert_array_equal(got[24:32:2], a.max(1))
    np.testing.assert_array_equal(got[25:32:2].copy().view(np.uint32), a.argmax(1))


def test_broadcast_brcb_and_transpose() -> None:
    a = values("half", 13)
    body = """AscendC::Broadcast<half, 2, 1>(out, a, sim::Shape{16, 16}, sim::Shape{16, 1}, tmp);
AscendC::Broadcast<half, 2, 0>(out[256], a, sim::Shape{16, 16}, sim::Shape{1, 16}, tmp);
AscendC::Brcb(out[512], a, 2, AscendC::BrcbRepeatParams(1, 8));
AscendC::Transpose(out[768], a);"""
    got = run({"A": ("half", a)}, ("half", 1024), body, {"tmp": ("uint8_t", 1024)})
    np.testing.assert_array_equal(got[:256].reshape(16, 16), np.repeat(a[:16, None], 16, 1))
    np.testing.assert_array_equal(got[256:512].reshape(16, 16), np.repeat(a[None, :16], 16, 0))
    np.testing.assert_array_equal(got[512:768].reshape(16, 16), np.repeat(a[:16, None], 16, 1))
    np.testing.assert_array_equal(got[768:].reshape(16, 16), a.reshape(16, 16).T)


def test_sort_merge_and_gather() -> None:
    a = np.random.default_rng(14).permutation(N).astype(np.float32)
    body = f"""AscendC::CreateVecIndex(idx, 0, {N});
AscendC::Sort32(pairs, a, idx.ReinterpretCast<uint32_t>(), {N // 32});
AscendC::MrgSort4Info info; for (auto& n : info.elementLengths) n = 32; info.validBit = 15;
AscendC::MrgSortSrcList<float> list; list.src1 = pairs[0]; list.src2 = pairs[64]; list.src3 = pairs[128]; list.src4 = pairs[192];
AscendC::MrgSort<float>(merged, list, info);
uint64_t kept = 0;
AscendC::GatherMask(out, merged, (uint8_t)1, false, (uint32_t)0, AscendC::GatherMaskParams(1, 4, 8, 0), kept);
AscendC::ArithProgression<int32_t>(idx, 508, -4, 128);
AscendC::Gather(out[128], a, idx.ReinterpretCast<uint32_t>(), (uint32_t)0, (uint32_t)128);"""
    scratch = {"idx": ("int32_t", N), "pairs": ("float", 2 * N), "merged": ("float", 256)}
    got = run({"A": ("float", a)}, ("float", N), body, scratch)
    np.testing.assert_array_equal(got[:128], np.sort(a[:128])[::-1])
    np.testing.assert_array_equal(got[128:], a[:128][::-1])


def test_axpy_muladd_and_integer_bits() -> None:
    a, b = values("float", 15), values("float", 16)
    body = f"""AscendC::Duplicate(out, 1.0f, {N});
AscendC::Axpy(out, a, 2.0f, {N});
AscendC::MulAddDst(out, a, b, {N});"""
    got = run({"A": ("float", a), "B": ("float", b)}, ("float", N), body)
    np.testing.assert_allclose(got, 1 + 2 * a + a * b, rtol=1e-5, atol=1e-5)
    x, y = values("int16_t", 17), values("int16_t", 18)
    body = f"""AscendC::And(out, a, b, {N});
AscendC::Or(out[{N}], a, b, {N});
AscendC::Not(out[{2 * N}], a, {N});
AscendC::ShiftLeft(out[{3 * N}], a, int16_t(2), {N});
AscendC::ShiftRight(out[{4 * N}], a, int16_t(3), {N});"""
    bits = run({"A": ("int16_t", x), "B": ("int16_t", y)}, ("int16_t", 5 * N), body).reshape(5, N)
    for row, want in zip(bits, [x & y, x | y, ~x, x << 2, x >> 3], strict=True):
        np.testing.assert_array_equal(row, want.astype(np.int16))


def test_math_functions() -> None:
    a = values("float", 19, 2.0)
    names = ["Sin", "Cos", "Sigmoid", "Silu", "Round"]
    body = "\n".join(f"AscendC::{name}(out[{i * N}], a, tmp, {N});" for i, name in enumerate(names))
    body += f"\nAscendC::ClampMax<float>(out[{5 * N}], a, tmp, 0.5f, {N});\nAscendC::ClampMin<float>(out[{6 * N}], a, tmp, 0.5f, {N});"
    got = run({"A": ("float", a)}, ("float", 7 * N), body, {"tmp": ("uint8_t", 4096)}).reshape(7, N)
    x = a.astype(np.float64)
    want = [np.sin(x), np.cos(x), 1 / (1 + np.exp(-x)), x / (1 + np.exp(-x)), np.rint(x), np.minimum(x, 0.5), np.maximum(x, 0.5)]
    for row, expected in zip(got, want, strict=True):
        np.testing.assert_allclose(row, expected, rtol=1e-5, atol=1e-6)


def test_padding_fills_the_right_of_a_row() -> None:
    """DataCopyPad with padding: three rows of 5 floats land 8 apart, element 5 is the padding value."""
    a = values("float", 20)
    pad = (
        "AscendC::DataCopyPad(out, A, AscendC::DataCopyExtParams(3, 20, 4, 0, 0), AscendC::DataCopyPadExtParams<float>(true, 0, 3, 7.0f));"
    )
    got = run({"A": ("float", a)}, ("float", 24), f"AscendC::Duplicate(out, 0.0f, 24);\n{pad}").reshape(3, 8)
    np.testing.assert_array_equal(got[:, :5], np.stack([a[0:5], a[6:11], a[12:17]]))
    np.testing.assert_array_equal(got[:, 5:], np.full((3, 3), 7, np.float32))
