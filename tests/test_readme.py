"""The README's commands, its output and its operator are what really happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from fusion.cli.main import COMMANDS, cli
from fusion.toolchain import find
from tests.cli.runner import run

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def plain(text: str) -> list[str]:
    """Lines without numbers, borders and spaces, which change with estimates and widths."""
    return [" ".join(re.sub(r"[\d.,e+-]*\d|[┃│]", " ", line).split()) for line in text.splitlines()]


def test_it_is_short() -> None:
    assert README.count("\n") < 150


def test_the_test_command_is_what_ci_runs() -> None:
    main, test = (block.strip() for block in blocks("sh"))
    assert f"'{test}'" in (ROOT / ".ci" / "run").read_text()
    assert main.startswith("bash .ci/bootstrap && .venv/bin/fusion-plan ")


def test_bootstrap_refuses_what_it_does_not_know() -> None:
    done = subprocess.run(["bash", str(ROOT / ".ci" / "bootstrap"), "tests"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "usage: bash .ci/bootstrap [test]\n")


def test_every_command_is_in_the_table() -> None:
    assert [name for name in COMMANDS if f"`fusion-plan {name}" not in README and name != "plan"] == []


@pytest.mark.skipif(find() is None, reason="no TileLang-Ascend compiler")
def test_the_output_is_that_of_the_main_job(tmp_path: Path) -> None:
    command = blocks("sh")[0].strip().partition("fusion-plan ")[2].split()
    result = run(*command, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    printed = [line for line in plain(result.stdout) if line]
    shown = [line for line in plain(blocks("text")[0]) if line and line != "..."]
    assert shown[0] == printed[0] and shown[-1] == printed[-1] == "verdict: clean"
    assert [line for line in shown if not any(line in p for p in printed)] == []


def test_the_operator_of_one_s_own_is_planned(tmp_path: Path) -> None:
    (tmp_path / "swish.py").write_text(blocks("python")[0])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        result = CliRunner().invoke(cli, ["swish.py", "--target", "1", "--fast"])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "swish_gemm-1" / "kernels").is_dir()


def test_importing_the_command_line_needs_no_checkout() -> None:
    done = subprocess.run([sys.executable, "-m", "fusion.cli.main", "--version"], capture_output=True, text=True, check=True, cwd="/")
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", done.stdout)
