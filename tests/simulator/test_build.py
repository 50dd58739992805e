"""What stops a build or a run before it starts: each with the place and the reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fusion.errors import FusionError
from fusion.simulator import Buffer, run_kernel
from fusion.simulator.buffers import from_bfloat16_bits, to_bfloat16_bits
from fusion.simulator.source import mark_lines, parse
from tests.simulator.handwritten import BARRIER, flag, kernel, load, store

N = 64
A = np.ones(N, np.float32)
BUFFERS = [Buffer("A", "float32", (N,), A), Buffer("C", "float32", (N,), role="out")]


def text(body: str) -> str:
    return kernel({"A": "float", "C": "float"}, {"x": ("float", N), "y": ("float", N)}, body)


def refused(source: str, *parts: str) -> None:
    with pytest.raises(FusionError) as error:
        run_kernel(source, "test", BUFFERS)
    for part in parts:
        assert part in str(error.value), str(error.value)


def test_a_name_that_is_not_covered_stops_with_name_and_line() -> None:
    refused(text(f"AscendC::Frobnicate(y, x, {N});"), "Frobnicate", "line 26", "does not cover")
    refused(text("AscendC::BilinearInterpolation(y, x);"), "BilinearInterpolation is not simulated", "line 26")


def test_a_dtype_that_the_instruction_lacks_stops_with_the_line() -> None:
    refused(
        text(f"auto b = x.ReinterpretCast<bfloat16_t>();\nAscendC::Add(b, b, b, {N});"), "AscendC::Add does not take this dtype", "line 27"
    )
    refused(text(f"AscendC::Add(y, x, x.ReinterpretCast<half>(), {N});"), "line 26")


def test_cross_core_flag_mode_0_stops_the_run() -> None:
    run = run_kernel(text("AscendC::CrossCoreSetFlag<0, PIPE_MTE3>(1);"), "test", BUFFERS)
    assert [f.rule for f in run.errors] == ["simulation-stopped"] and "mode 0" in run.errors[0].message


def test_without_gcc_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    monkeypatch.setenv("FUSION_PLAN_HOME", str(tmp_path))
    monkeypatch.setattr("fusion.simulator.build._standin_digest", lambda: "none")
    refused(text(""), "no g++ found", "install g++")


def test_arguments_are_checked() -> None:
    with pytest.raises(FusionError, match="1 buffer given, the kernel takes 2: A_handle, C_handle"):
        run_kernel(text(""), "test", BUFFERS[:1])
    with pytest.raises(FusionError, match="0 kernels in the source"):
        run_kernel("int main() {}", "test", BUFFERS)
    with pytest.raises(FusionError, match="float33"):
        Buffer("A", "float33", (1,), A)
    with pytest.raises(FusionError, match=r"shape \(64,\), declared \(32,\)"):
        Buffer("A", "float32", (32,), A)
    with pytest.raises(FusionError, match="input without data"):
        Buffer("A", "float32", (32,))
    with pytest.raises(FusionError, match="did you mean out"):
        Buffer("A", "float32", (32,), role="outt")  # pyright: ignore[reportArgumentType]


def test_scalar_arguments_and_the_launcher() -> None:
    body = "\n".join(
        [load("x", "A", N, "float"), BARRIER, f"AscendC::Adds(y, x, (float)n, {N});", BARRIER, store("C[cid * n]", "y", N // 2, "float")]
    )
    source = text(body).replace("uint64_t fftsAddr", "int64_t n, uint64_t fftsAddr") + (
        'extern "C" void call(uint8_t* A_handle, uint8_t* C_handle, int64_t n, aclrtStream stream) {\n'
        "  test_kernel<<<(n + 31) / 16 - 1, nullptr, stream>>>(A_handle, C_handle, n, 0);\n}\n"
    )
    run = run_kernel(source, "test", BUFFERS, {"n": N // 2})
    assert run.blocks == 2 and run.verdict == "clean"
    np.testing.assert_array_equal(run.outputs["C"], A + N // 2)
    with pytest.raises(FusionError, match="no value for the scalar 'n'"):
        run_kernel(source, "test", BUFFERS)


def test_marks_do_not_move_lines_or_split_statements() -> None:
    lines = [
        'extern "C" __global__ __aicore__ void k(GM_ADDR a) {',
        "  int x = f(1,",
        "    2);",
        "  for (int32_t i = 0; i < 3; ++i) {",
        "    g(i);",
        "  }",
        "}",
    ]
    marked = mark_lines(lines)
    assert len(marked) == len(lines) and marked[0] == lines[0]
    assert marked[1].startswith("FP_LINE(2)") and marked[2] == lines[2]
    assert marked[3].endswith("FP_LOOP(i)") and marked[4].startswith("FP_LINE(5)") and marked[5] == lines[5]


def test_the_address_map_is_read() -> None:
    found = parse(text(flag("MTE2_V")), "test")
    assert [(x.name, x.memory, x.lo, x.hi) for x in found.locals] == [("x", "UB", 0, 256), ("y", "UB", 256, 512)]
    assert found.vectors == 1 and not found.has_launcher and not found.needs_templates


def test_bfloat16_bits_round_trip() -> None:
    values = np.array([1.0, -2.5, 1 + 2**-9, np.inf, -np.inf, 3.4e38, 1e-40], np.float32)
    back = from_bfloat16_bits(to_bfloat16_bits(values))
    np.testing.assert_array_equal(to_bfloat16_bits(back), to_bfloat16_bits(values))
    assert np.isnan(from_bfloat16_bits(to_bfloat16_bits(np.array([np.nan], np.float32))))[0]


def test_progress_is_told() -> None:
    seen: list[tuple[int, int]] = []
    run_kernel(text(""), "test", BUFFERS, blocks=50, progress=lambda done, total: seen.append((done, total)))
    assert seen and all(total == 50 for _, total in seen)
