"""Every mistake on the command line: exit status 2, one or two lines, nothing written, never a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.runner import run

GEMM = ("gemm", "--fast")
MISTAKES: dict[str, tuple[tuple[str, ...], str, str]] = {
    "operator": (("gqa_sink_bw",), "no operator 'gqa_sink_bw'", "did you mean gqa_sink_bwd?"),
    "command": (("toolchan",), "no operator 'toolchan'", "did you mean toolchain"),
    "pass": ((*GEMM, "--passes", "retain-in-u"), "no pass 'retain-in-u'", "did you mean retain-in-ub?"),
    "pass option": ((*GEMM, "--passes", "retain-in-ub{valus=p}"), "no option 'valus'", "did you mean values?"),
    "pass by name": (("passes", "retain"), "no pass 'retain'", "did you mean retain-in-ub?"),
    "option": ((*GEMM, "--targte", "2"), "no option --targte", "did you mean --target"),
    "target word": ((*GEMM, "--target", "two"), "'two' is not a valid integer", "--help"),
    "target 0": ((*GEMM, "--target", "0"), "--target 0", "at least one kernel"),
    "target 9": ((*GEMM, "--target", "9"), "--target 9: the operator has 2 stages that can be apart", "nearest count that works: 2"),
    "device": ((*GEMM, "--device", "910B33"), "no device '910B33'", "did you mean 910B3"),
    "dtype": ((*GEMM, "--dtype", "floot16"), "--dtype floot16: no such dtype", "did you mean float16"),
    "shape key": ((*GEMM, "--shape", "MM=4"), "--shape: gemm has no parameter 'MM'", "did you mean M?"),
    "shape value": ((*GEMM, "--shape", "M=many"), "--shape M=many: expected an integer", ""),
    "shape form": ((*GEMM, "--shape", "M"), "--shape M: no value", "write it like"),
    "shape none": ((*GEMM, "--shape", "M=none"), "--shape M=none: expected an integer", ""),
    "shape size": ((*GEMM, "--shape", "M=0"), "dim m has size 0", "sizes are at least 1"),
    "code": ((*GEMM, "--target-code", "cuda"), "'cuda' is not one of", "--help"),
    "plan file": ((*GEMM, "--plan", "missing.plan"), "--plan missing.plan: No such file", "give a plan file"),
    "nothing near": (("qqqq",), "no operator 'qqqq'", "see `fusion-plan list`"),
    "no option near": (("list", "--quux"), "no option --quux", "list --help`"),
    "device file": ((*GEMM, "--device", "missing.toml"), "missing.toml: the device file cannot be read", "a known device: 910B1"),
    "device not near": ((*GEMM, "--device", "A100"), "no device 'A100'", "910C; or give a .toml file"),
    "csv": (
        ("calibrate", "missing.csv"),
        "missing.csv: cannot be read: No such file",
        "give a CSV file with the columns label,launches,us",
    ),
    "check file": (("check", "missing.py"), "missing.py: no such file or folder", "give Python files"),
    "check word": (("check", ".", "--args", "=3"), "--args: '=3' is not NAME=VALUE", "write it like"),
    "check size": (("check", ".", "--shape", "M=-3"), "--shape: M=-3: a size is a whole number", "write it like"),
    "operator file": (("missing.py",), "no file missing.py", "give the path of a Python file"),
    "no operand": (("show",), "Missing argument 'OPERATOR'", "show --help"),
    "form": (("show", "gemm", "--as", "svg"), "'svg' is not one of", "--help"),
    "groups": (("gqa_sink_bwd", "--fast", "--shape", "heads=3"), "heads=3 is no multiple of groups=8", "each K/V head"),
}


CONTRADICTIONS = (
    ("compare", "gemm", "--json", "--csv"),
    ("compare", "gemm", "--fast", "--html", "page.html"),
    ("compare", "gemm", "--fast", "--trace", "trace.json"),
    ("compare", "gemm", "--fast", "--rerank", "2"),
    ("compare", "gemm", "--plans", "my.plan", "--targets", "2"),
    ("compare", "gemm", "--plans", "my.plan", "--rerank", "2"),
    ("gemm", "--fast", "--rerank", "2"),
    ("gemm", "--fast", "--target-code", "pto"),
    ("gemm", "--target-code", "none", "--rerank", "2"),
    ("gemm", "--plan", "my.plan", "--rerank", "2"),
    ("gemm", "--passes", "none", "--time-passes"),
    ("gemm", "--passes", "none", "--print-between-passes"),
    ("verify", "gemm", "--level", "L0", "--exact-shape"),
    ("show", "gemm", "--json", "--as", "dot"),
    ("calibrate", "--labels", "--published"),
    ("calibrate", "--labels", "measured.csv"),
    ("calibrate", "--emit-microbenchmarks", "bench", "--out", "my.toml"),
    ("check", ".", "--no-run", "--shape", "M=4"),
)


@pytest.mark.parametrize("arguments", CONTRADICTIONS, ids=" ".join)
def test_options_that_contradict_each_other_are_refused(arguments: tuple[str, ...], tmp_path: Path) -> None:
    result = run(*arguments, folder=tmp_path)
    assert result.returncode == 2, result.stdout
    assert result.stderr.startswith("fusion-plan: --")
    assert "exclude each other" in result.stderr
    assert "leave out one of them" in result.stderr
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_an_option_that_another_one_needs_is_named(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("import tilelang\n")
    result = run("check", "kernel.py", "--write", folder=tmp_path)
    assert result.returncode == 2
    assert "--write does nothing without --fix" in result.stderr
    assert "add --fix, or leave out --write" in result.stderr


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told(name: str, tmp_path: Path) -> None:
    arguments, what, remedy = MISTAKES[name]
    result = run(*arguments, folder=tmp_path)
    assert result.returncode == 2, result.stdout
    assert result.stdout == ""
    assert what in result.stderr
    assert remedy in result.stderr
    assert len(result.stderr.splitlines()) <= 2
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_forward_and_backward_are_separate_launches(tmp_path: Path) -> None:
    result = run("gqa_sink_bwd", "--target", "1", "--shape", "heads=4,groups=2,seq_len=256", folder=tmp_path)
    assert result.returncode == 2
    assert "--target 1 is impossible" in result.stderr
    assert "dO exists only after O" in result.stderr
    assert "rule exists-after" in result.stderr
    assert "nearest count that works: 2" in result.stderr


def test_a_plan_file_and_a_target_must_agree(tmp_path: Path) -> None:
    (tmp_path / "my.plan").write_text("kernel a: product round\n")
    result = run(*GEMM, "--plan", "my.plan", "--target", "2", folder=tmp_path)
    assert result.returncode == 2
    assert "--target 2, but my.plan has 1 kernel\n" in result.stderr


def test_a_mistake_in_a_plan_file_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "my.plan").write_text("kernel a: product\nkernel b: rond\n")
    result = run(*GEMM, "--plan", "my.plan", folder=tmp_path)
    assert result.returncode == 2
    assert "my.plan:2: no stage 'rond' in gemm" in result.stderr
    assert "did you mean round" in result.stderr


BROKEN = {
    "syntax": ("from fusion.graph import operator\ndef f(:\n", "op.py:2"),
    "import": ("from fusion.graph import operator\n\nimport no_such_module\n", "op.py:3"),
    "none": ("x = 1\n", "no operator in this file"),
    "graph": (
        "from fusion.graph import Graph, operator\n\n\n@operator\ndef f():\n    g = Graph('f')\n    g.dim('n', 4)\n    g.dim('n', 4)\n",
        "op.py:8",
    ),
    "imported": ("import broken_neighbour\n", "op.py:1: SyntaxError"),
    "module": ("import no_such_module\n", "install no_such_module"),
    "exit": ("import sys\n\nsys.exit(3)\n", "op.py:3: SystemExit: 3"),
    "refused": ("from fusion.errors import FusionError\n\nraise FusionError('no', remedy='do this')\n", "do this"),
    "lacking": ("from fusion.graph import operator\n\n\n@operator\ndef f(n: int):\n    return 1 / 0\n", "op.py:4: f needs a value for n"),
    "function": ("from fusion.graph import operator\n\n\n@operator\ndef f(n: int = 4):\n    return 1 / 0\n", "op.py:6"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_operator_file_is_told_with_its_line(name: str, tmp_path: Path) -> None:
    text, place = BROKEN[name]
    (tmp_path / "op.py").write_text(text)
    (tmp_path / "broken_neighbour.py").write_text("x = (\n")
    result = run("op.py", "--fast", folder=tmp_path)
    assert result.returncode == 2, result.stdout
    assert place in result.stderr
    assert len(result.stderr.splitlines()) == 2  # what and where, then the remedy
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    result = run(*GEMM, "--out", "mine", folder=tmp_path)
    assert result.returncode == 2
    assert "mine holds files that are not fusion-plan's" in result.stderr
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    result = run(*GEMM, "--out", "mine", folder=tmp_path)
    assert result.returncode == 2
    assert "mine is a file" in result.stderr


@pytest.mark.parametrize("package", ["kernels", "passes"])
def test_another_owner_of_a_package_is_named(package: str, tmp_path: Path) -> None:
    other = tmp_path / "site"
    (other / package).mkdir(parents=True)
    (other / package / "__init__.py").write_text("")
    info = other / "otherone-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: otherone\nVersion: 1.0\n")
    (info / "top_level.txt").write_text(f"{package}\n")
    (info / "RECORD").write_text(f"{package}/__init__.py,,\n")
    root = str(Path(__file__).parents[2])
    result = run("list", folder=tmp_path, environment={"PYTHONPATH": f"{other}:{root}"})
    assert result.returncode == 2, result.stdout
    assert f"the package '{package}'" in result.stderr
    assert "belongs to the distribution otherone" in result.stderr
    assert "venv" in result.stderr


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    shape = ("--targets", "1", "--shape", "M=64,N=64,K=64")
    result = run("compare", "gemm", *shape, "--html", "file/page.html", folder=tmp_path)
    assert (result.returncode, "Traceback" in result.stderr) == (2, False)
    assert "fusion-plan: file: File exists\n  name a file or folder that can be read or written" in result.stderr
