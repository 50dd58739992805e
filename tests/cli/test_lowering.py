"""What happens with the compiler: its results are written, its failures told for every kernel, and then nothing is written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner

import fusion.toolchain
from fusion.cli.main import cli
from fusion.errors import FusionError
from fusion.toolchain import KernelSource, Lowered, LowerError, find
from tests.cli.runner import run

Object = dict[str, object]


def failing(kernels: Sequence[KernelSource], targets: Sequence[str], **_: object) -> list[Lowered]:
    """A compiler that crashes on every kernel but the first."""
    error = LowerError("crash", "the compiler ended with signal 11", "AscendMemoryPlanning", "", "ascendc")
    return [Lowered(k.name, ascendc="// code", tir="# tir") if i == 0 else Lowered(k.name, error=error) for i, k in enumerate(kernels)]


def working(kernels: Sequence[KernelSource], targets: Sequence[str], **_: object) -> list[Lowered]:
    return [Lowered(k.name, ascendc="// code", pto="// pto", tir="# tir") for k in kernels]


def test_every_kernel_that_fails_is_named_and_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion.toolchain, "lower", failing)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["mlp", "--target", "3", "--rerank", "1"])
    assert isinstance(result.exception, FusionError)
    told = str(result.exception)
    assert "the compiler fails on 2 of 3 kernels" in told
    assert told.count("crash in AscendMemoryPlanning): the compiler ended with signal 11") == 2
    assert "--target-code none" in told
    assert list(tmp_path.iterdir()) == []


def test_what_the_compiler_made_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fusion.toolchain, "lower", working)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["mlp", "--target", "3", "--rerank", "1", "--json"])
    assert result.exit_code == 0, result.output
    found = cast("Object", json.loads(result.stdout))
    for k in cast("list[Object]", found["kernels"]):
        for kind in ("source", "tir", "ascendc", "pto"):
            assert Path(str(k[kind])).is_file()


@pytest.mark.skipif(find() is None, reason="no TileLang-Ascend compiler on this machine")
def test_the_real_compiler_gives_code_and_flags(tmp_path: Path) -> None:
    shape = "heads=2,groups=1,seq_len=256,window=128"
    result = run("gqa_sink_bwd", "--target", "2", "--shape", shape, "--target-code", "ascendc", "--json", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    kernels = cast("list[Object]", json.loads(result.stdout)["kernels"])
    assert len(kernels) == 2
    for k in kernels:
        code = Path(str(k["ascendc"])).read_text()
        assert "AIC" in code
        assert "AIV" in code
        flags = [h["flag"] for h in cast("list[Object]", k["handoffs"])]
        assert None not in flags
        assert len(set(flags)) == len(flags)
