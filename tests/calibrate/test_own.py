"""Measured launches that are kernels of a user's own files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fusion.calibrate import measured
from fusion.calibrate.fit import predict
from fusion.calibrate.own import is_own, operator_of, outline_of
from fusion.calibrate.session import calibrated, rows_of, warning
from fusion.device import load
from fusion.errors import FusionError
from fusion.toolchain import find

KERNEL = """
import tilelang
import tilelang.language as T

configs = {tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True, tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True}


@tilelang.jit(pass_configs=configs)
def NAME(blocks=40):
    @T.prim_func
    def main(X: T.Tensor((blocks, 64, 128), "float"), Y: T.Tensor((blocks, 64, 128), "float")):
        with T.Kernel(blocks, threads=1, is_npu=True) as (cid):
            x = T.alloc_ub((64, 128), "float")
            T.copy(X[cid, :, :], x)
            T.tile.exp(x, x)
            T.copy(x, Y[cid, :, :])

    return main
"""
real = pytest.mark.skipif(find() is None, reason="no TileLang-Ascend compiler")


def written(folder: Path, *names: str, call: str = "") -> Path:
    path = folder / "mine.py"
    path.write_text("".join(KERNEL.replace("NAME", n) for n in names) + call)
    return path


def test_files_are_told_from_labels() -> None:
    assert [is_own(x) for x in ("k.py", "a/k.py:name", "6/dk_dq", "bench/a.pyx", "python")] == [True, True, False, False, False]


@real
def test_a_profile_is_mapped_to_a_kernel_file(tmp_path: Path) -> None:
    path = written(tmp_path, "expo", call="\nexpo(blocks=80)\n")
    profile = tmp_path / "OpBasicInfo.csv"
    profile.write_text("Op Name,Task Duration(us),\nexpo_kernel,900,\nexpo_kernel,20.0,\nexpo_kernel,22.0,\nother,3.0,\n")
    (row,), left = rows_of([profile], [f"expo={path}"])
    assert (row.label, row.measured_us, row.group, left) == ("expo", 21.0, "mine", ["other"])
    assert row.launches[0].blocks == 80, "the arguments are those of the file's own call"
    assert 5.0 < predict(load(), row) < 100.0


@real
def test_one_of_several_kernels_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "first", "second")
    with pytest.raises(FusionError, match="2 kernels: first, second") as refused:
        outline_of(str(path))
    assert refused.value.remedy == f"write {path}:NAME"
    assert outline_of(f"{path}:second").blocks == 40


def test_a_missing_file_is_told() -> None:
    with pytest.raises(FusionError, match="cannot be read: No such file") as refused:
        outline_of("nowhere/kernel.py")
    assert refused.value.where == "nowhere/kernel.py"


def test_an_emitted_kernel_names_its_operator(tmp_path: Path) -> None:
    emitted, own = tmp_path / "k1_qk_finish.py", tmp_path / "mine.py"
    emitted.write_text('# ruff: noqa: E741\n"""k1_qk_finish: qk, softmax of bias_attn."""\n')
    own.write_text('"""A kernel of mine."""\n')
    assert [operator_of(str(p)) for p in (emitted, own)] == ["bias_attn", "mine"]


def test_one_latency_is_not_fitted() -> None:
    with pytest.raises(FusionError, match="one latency says nothing of how far a fit to it is off") as refused:
        calibrated(load(), measured.rows()[:1], lambda *_: None)
    assert "--published" in refused.value.remedy


def test_a_fit_that_is_worse_than_the_device_is_told() -> None:
    rows = measured.rows()[1:3]
    result = calibrated(load(), rows, lambda *_: None)
    assert warning(load(), result, rows).startswith("910B3 as it is predicts these rows within 3.2 % on average, the fit within")
    better = replace(result, residuals=tuple(replace(r, fitted_us=r.measured_us) for r in result.residuals))
    assert warning(load(), better, rows) == ""
