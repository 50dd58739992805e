"""Small kernels and a wrapper against texts that were read by a person; what is emitted is clean by ruff's own word."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fusion.emit.emit import emit
from fusion.emit.layout import WIDTH, fit, tidy
from fusion.emit.program import Program
from fusion.output.files import program_files
from fusion.plan.planner import Planner
from fusion.plan.text import from_text
from kernels.linear import gemm, gemm_bias_relu, mlp
from tests.emit.test_host import SPLIT, backward

Golden = Callable[[str, str], None]
ROOT = Path(__file__).parents[2]


def test_gemm(golden: Golden) -> None:
    plan = from_text("tiles m=64 n=64 k=64\nkernel gemm: product round\n  persistent no", gemm(M=128, N=128, K=256))
    golden("gemm.py.txt", emit(plan).kernels[0].source)


def test_gemm_bias_relu(golden: Golden) -> None:
    graph = gemm_bias_relu(M=128, N=128, K=256)
    plan = from_text("tiles m=64 n=64 k=64\nkernel gemm_bias_relu: product epilogue\n  grid m n\n  persistent no", graph)
    golden("gemm_bias_relu.py.txt", emit(plan).kernels[0].source)


def test_wrapper(golden: Golden) -> None:
    golden("double_bwd_host.py.txt", emit(from_text(SPLIT, backward())).wrapper)


def test_plan_text(golden: Golden) -> None:
    graph = gemm_bias_relu(M=128, N=128, K=256)
    golden("gemm_bias_relu.plan.txt", str(from_text("tiles m=64 n=64 k=64\nkernel gemm_bias_relu: product epilogue", graph)))


def test_golden_kernels_are_short() -> None:
    for path in (ROOT / "tests" / "golden").glob("*.py.txt"):
        assert len(path.read_text().splitlines()) < 90, path


def clean(program: Program, folder: Path) -> None:
    """Nothing for `ruff check` or `ruff format` to do, by the project's settings."""
    for name, text in program_files(program, ()).items():
        if name.endswith(".py"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    settings = ["--config", str(ROOT / "pyproject.toml"), str(folder)]
    for command in (["check", "--output-format", "concise"], ["format", "--diff"]):
        result = subprocess.run([sys.executable, "-m", "ruff", *command, *settings], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("count", [9, 6, 5, 4, 2])
def test_variants_are_clean(count: int, variant: Callable[[int], Program], tmp_path: Path) -> None:
    clean(variant(count), tmp_path)


@pytest.mark.parametrize("target", [2, 3])
def test_planned_programs_are_clean(target: int, tmp_path: Path) -> None:
    clean(emit(Planner(mlp(tokens=512, dim=128, hidden=512)).plan(target, 1)[0].plan), tmp_path)


def test_long_lines_are_broken_as_ruff_does(tmp_path: Path) -> None:
    names = [f"argument_{i}_with_a_name" for i in range(12)]
    lines = [f"call({', '.join(names[:4])})", f"call({', '.join(names[:5])}, x[0:64])", f"value = call({', '.join(names)})"]
    lines += [f"for k in range(call({', '.join(names[:6])})):", "    pass"]
    text = "\n".join(x for line in lines for x in fit(line)) + "\n"
    assert all(len(line) <= WIDTH for line in text.splitlines())
    (tmp_path / "long.py").write_text(text)
    command = [sys.executable, "-m", "ruff", "format", "--diff", "--config", str(ROOT / "pyproject.toml"), str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout


def test_slices_and_numbers_are_written_as_ruff_does() -> None:
    assert tidy("T.copy(a[x, 0:block_q // 2], b)") == ["T.copy(a[x, 0 : block_q // 2], b)"]
    assert tidy("T.copy(a[x, 0:block_q], b)") == ["T.copy(a[x, 0:block_q], b)"]
    assert tidy("f(x, -1e+30, 1e-05)") == ["f(x, -1e30, 1e-05)"]


def test_long_comments_are_wrapped() -> None:
    lines = fit("    # " + "word " * 60)
    assert len(lines) > 1
    assert all(line.startswith("    #") and len(line) <= WIDTH for line in lines)
