"""`fusion-plan toolchain ...` and what importing the package costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from fusion.cli.toolchain import toolchain
from fusion.toolchain import discover, warm
from fusion.toolchain.bars import Bars
from fusion.toolchain.progress import Lines, terminal


def run(*arguments: str) -> str:
    result = CliRunner().invoke(toolchain, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


@pytest.mark.usefixtures("real")
def test_status_names_compiler_place_worker_and_cache() -> None:
    warm()
    shown = run("status")
    assert "compiler   tilelang-ascend 0.1.4 (private installation" in shown
    assert "worker     starting, process " in shown
    assert "cache      0 lowered kernels" in shown
    assert run("stop") == "stopped 1 worker\n"
    assert "worker     not running" in run("status")


@pytest.mark.usefixtures("real")
def test_install_of_what_is_there_only_says_so() -> None:
    assert run("install").startswith("tilelang-ascend 0.1.4 (")


@pytest.mark.usefixtures("home")
def test_without_a_compiler_status_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "compiler   none; run `fusion-plan toolchain install`" in run("status")
    monkeypatch.setattr(discover, "expected_kind", lambda: None)
    assert "compiler   none: tilelang-ascend cannot run on" in run("status")


def test_remove_says_what_it_freed(home: Path) -> None:
    (home / "toolchain").mkdir(parents=True)
    (home / "toolchain/big").write_bytes(bytes(3_000_000))
    assert run("remove") == "freed 3 MB\n"
    assert not home.exists()


def test_importing_the_toolchain_is_light() -> None:
    script = "import sys, fusion.toolchain; print(sorted({'torch', 'numpy', 'rich', 'click', 'networkx'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_without_a_terminal_progress_is_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal() as observer:
        assert isinstance(observer, Lines)
        observer.say("hello")
        observer.step("first", 10)
        observer.advance(5)
    assert capsys.readouterr().err == "hello\n  first ...\n"


def test_bars_show_each_step_to_its_end(capsys: pytest.CaptureFixture[str]) -> None:
    with Bars() as bars:
        bars.say("hello [not markup]")
        bars.step("first", 2_000_000)
        bars.advance(5_000_000)
        bars.step("second", 0)
    shown = capsys.readouterr().err
    assert "hello [not markup]" in shown
    assert "2.0/2.0 MB" in shown and "second" in shown
