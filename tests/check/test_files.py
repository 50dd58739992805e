"""What files do around their kernels: executed at import, arguments, open sizes, comparisons of their own, and what cannot be judged."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner

from fusion.check.driver import Options, check_sources, read_source
from fusion.check.report import FileReport, exit_code
from fusion.cli.check import check
from fusion.errors import FusionError
from tests.check.conftest import KERNELS

ADD = textwrap.dedent("""
    import argparse
    import torch
    import tilelang
    from tilelang import language as T
    from tilelang.profiler import do_bench

    torch.set_default_device("npu")
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=128)
    options = parser.parse_args()


    @tilelang.autotune(configs=[{"block": 32}, {"block": 64}])
    @tilelang.jit(out_idx=[-1], pass_configs={"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True})
    def add(rows, columns, block, dtype="float"):
        @T.prim_func
        def main(A: T.Tensor((rows, columns), dtype), B: T.Tensor((rows, columns), dtype), C: T.Tensor((rows, columns), dtype)):
            with T.Kernel(rows // block, is_npu=True) as (cid, vid):
                a_ub = T.alloc_ub((block // 2, columns), dtype)
                b_ub = T.alloc_ub((block // 2, columns), dtype)
                T.copy(A[cid * block + vid * block // 2, 0], a_ub)
                T.copy(B[cid * block + vid * block // 2, 0], b_ub)
                T.tile.add(a_ub, a_ub, b_ub)
                T.copy(a_ub, C[cid * block + vid * block // 2, 0])

        return main


    kernel = add(options.rows, 64)
    a, b = torch.randn(options.rows, 64).npu(), torch.randn(options.rows, 64).npu()
    torch.npu.synchronize()
    torch.testing.assert_close(kernel(a, b), a + b)
    print(do_bench(lambda: kernel(a, b)))

    if __name__ == "__main__":
        rows, columns = a.shape
        add(rows * 2, columns)
""")
QUICK = Options(time=False)


def files(folder: Path, **texts: str) -> list[FileReport]:
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    return check_sources([read_source(folder / f"{name}.py") for name in texts], QUICK)


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> FileReport:
    (report,) = files(tmp_path_factory.mktemp("executed"), add=ADD)
    return report


def test_a_file_that_runs_at_import_needs_no_device(executed: FileReport) -> None:
    assert [(kernel.verdict, kernel.args) for kernel in executed.kernels] == [
        ("clean", "rows=128, columns=64, block=32, dtype=float"),
        ("clean", "rows=256, columns=64, block=32, dtype=float"),
    ]


def test_its_own_comparison_sees_simulated_results(executed: FileReport) -> None:
    assert "the file's own comparison passes on 1 simulated call" in executed.kernels[0].notes


def test_a_failing_comparison_is_a_finding(tmp_path: Path) -> None:
    (report,) = files(tmp_path, subtract=ADD.replace("a + b)", "a - b)"))
    kernel = report.kernels[0]
    assert kernel.verdict == "wrong"
    (finding,) = kernel.findings
    assert finding.rule == "reference-differs" and "assert_close" in report.text.splitlines()[finding.line - 1]


UNJUDGED = {
    "syntax": ("import tilelang\ndef broken(:\n", "syntax-error", 2),
    "nothing": ("import tilelang\n", "no-kernel", 1),
    "raising": ("import tilelang\nraise RuntimeError('not today')\n", "import-error", 2),
    "giant": ("import tilelang\nheap = []\nwhile True:\n    heap.append(bytearray(b'x') * 10_000_000)\n", "import-memory", 0),
    "needy": (ADD.split("kernel = add")[0].replace("@tilelang.autotune", "@(lambda configs: lambda f: f)"), "missing-arguments", 14),
}


@pytest.fixture(scope="module")
def unjudged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, FileReport]:
    found = files(tmp_path_factory.mktemp("unjudged"), **{name: text for name, (text, _, _) in UNJUDGED.items()})
    return {report.path.stem: report for report in found}


@pytest.mark.parametrize("name", UNJUDGED)
def test_what_cannot_be_judged_is_said(unjudged: dict[str, FileReport], name: str) -> None:
    _, rule, line = UNJUDGED[name]
    (kernel,) = unjudged[name].kernels
    (finding,) = kernel.findings
    assert (kernel.verdict, finding.rule, finding.line) == ("error", rule, line)
    assert finding.message and finding.remedy and exit_code([kernel]) == 2


def test_a_missing_argument_is_named(unjudged: dict[str, FileReport]) -> None:
    message = unjudged["needy"].kernels[0].findings[0].message
    assert message == "add needs a value for rows, columns, block"


def test_an_endless_file_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusion.check.inspection.FILE_SECONDS", 2.0)
    (report,) = files(tmp_path, endless="import tilelang\nwhile True:\n    pass\n")
    (finding,) = report.kernels[0].findings
    assert finding.rule == "import-timeout" and finding.line in (2, 3) and "still running after 2 s" in finding.message


def test_a_frontend_mistake_has_its_line(tmp_path: Path) -> None:
    (report,) = files(tmp_path, mistake=ADD.replace("T.tile.add(", "T.tile.ad("))
    kernel = report.kernels[0]
    assert kernel.verdict == "refused" and "T.tile.ad(" in report.text.splitlines()[kernel.findings[0].line - 1]


# ---- the command


def run(*arguments: str) -> tuple[int, str]:
    """Exit status and output, as the console script gives them."""
    result = CliRunner().invoke(check, [*arguments, "--no-time"])
    if isinstance(result.exception, FusionError):
        return 2, str(result.exception)
    return result.exit_code, result.output


def test_arguments_replace_those_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "add.py").write_text(ADD)
    code, output = run(str(tmp_path / "add.py"), "--json", "--args", "rows=64", "block=64")
    (kernel,) = json.loads(output)
    assert (code, kernel["kernel"], kernel["verdict"], kernel["findings"]) == (0, "add", "clean", [])


def test_json_names_rule_line_message_and_remedy() -> None:
    code, output = run(str(KERNELS / "wide_rows.py"), "--json")
    (kernel,) = json.loads(output)
    assert (code, kernel["verdict"]) == (1, "refused")
    assert {"rule", "line", "message", "remedy"} <= set(kernel["findings"][0])


def test_a_fix_is_shown_and_written_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "not_combined.py"
    path.write_text((KERNELS / "not_combined.py").read_text())
    code, output = run(str(path), "--fix")
    assert (
        code == 0
        and "AUTO_CV_COMBINE: False" in path.read_text()
        and "+    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True" in output
    )
    code, _ = run(str(path), "--fix", "--write")
    assert code == 0 and "AUTO_CV_COMBINE: True" in path.read_text()


def test_sarif_is_written(tmp_path: Path) -> None:
    code, _ = run(str(KERNELS / "wide_result.py"), "--sarif", str(tmp_path / "out.sarif"))
    data = json.loads((tmp_path / "out.sarif").read_text())
    assert code == 1 and data["runs"][0]["results"][0]["ruleId"] == "memory-fits"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("nowhere.py",), "nowhere.py: no such file or folder"),
        ((str(KERNELS / "relay.py"), "--args", "block"), "'block' is not NAME=VALUE"),
        ((str(KERNELS / "relay.py"), "--shape", "M=ten"), "M=ten: a size is a whole number"),
    ],
)
def test_mistakes_on_the_command_line_are_one_line(arguments: tuple[str, ...], says: str) -> None:
    code, output = run(*arguments)
    assert code == 2 and says in output


def test_an_unknown_open_size_is_refused() -> None:
    code, output = run(str(KERNELS / "relay.py"), "--shape", "M=64")
    assert code == 2 and "no open size 'M'" in output
