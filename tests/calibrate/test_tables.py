"""Measured files as they come."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion.calibrate import tables
from fusion.errors import FusionError


def write(tmp_path: Path, name: str, text: str) -> Path:
    (tmp_path / name).write_text(text)
    return tmp_path / name


def test_op_basic_info(tmp_path: Path) -> None:
    path = write(tmp_path, "OpBasicInfo.csv", "Op Name,Op Type,Task Duration(us),Block Dim,\ndk_dq_kernel_kernel,mix,1460.5,4096,\n")
    assert tables.read(path, {"dk_dq": "6/dk_dq"}) == [tables.Measured("dk_dq", 1460.5, ("6/dk_dq",))]


def test_op_summary_drops_the_first_launch_and_cells_without_a_time(tmp_path: Path) -> None:
    lines = [
        "Device_id,Model Name,Op Name,Task Duration(us)",
        "0,x,k_kernel,900",
        "0,x,k_kernel,N/A",
        "0,x,k_kernel,100",
        "0,x,k_kernel,102",
        "",
        "0,x,k_kernel,101,,",
    ]
    assert tables.read_profile(write(tmp_path, "op_summary_1.csv", "\n".join(lines))) == {"k": [100.0, 102.0, 101.0]}


def test_kernel_details(tmp_path: Path) -> None:
    path = write(tmp_path, "kernel_details.csv", 'Step Id,Name,Type,Duration(us)\n0,"softmax_kernel","AI_CORE","\t12.5"\n')
    assert tables.read(path)[0].us == 12.5


def test_ours_names_the_launches_of_a_sum(tmp_path: Path) -> None:
    path = write(tmp_path, "ours.csv", "label,launches,us\nboth,6/a + 6/b,10\nskipped,x,N/A\n")
    assert tables.read(path) == [tables.Measured("both", 10.0, ("6/a", "6/b"))]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "found the columns a, b"),
        ("", "empty"),
        ("label,us\nx,fast\n", "'fast' is no time"),
        ("Name,Duration(us)\nx,1s\n", "'1s' is no time"),
        ("label,us\nx,-4\n", "in.csv:2: -4 is no time"),
        ("label,launches\nx,y\n", "found the columns label, launches"),
    ],
)
def test_foreign_files_say_what_was_found(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(FusionError, match=r"in\.csv") as error:
        tables.read(write(tmp_path, "in.csv", text))
    assert said in str(error.value)
    assert error.value.remedy


def test_unknown_kernels_are_named() -> None:
    with pytest.raises(FusionError, match="no launch has a known kernel: matmul"):
        tables.only_known([tables.Measured("matmul", 1.0, ("matmul",))], ("6/dk_dq",))
    with pytest.raises(FusionError, match="--map 'x'"):
        tables.mapped(("x",))


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FusionError, match="cannot be read"):
        tables.read(tmp_path / "none.csv")
