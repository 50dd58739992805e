"""What the commands print and write, without the compiler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from fusion.cli.main import COMMANDS
from fusion.graph import from_text as graph_from_text
from fusion.graph.jsonform import from_json as graph_from_json
from fusion.output.flags import flag_ids
from fusion.output.folder import MARKER
from fusion.plan.jsonform import from_json
from fusion.plan.text import from_text
from kernels import names
from tests.cli.runner import ROOT, report, run
from tests.plan.variants import COUNTS, PLANS

SMALL = ("--shape", "heads=4,groups=2,seq_len=256,window=128")
Object = dict[str, object]


def kernels(found: Object) -> list[Object]:
    return cast("list[Object]", found["kernels"])


def test_help_lists_the_commands_that_are_there(tmp_path: Path) -> None:
    result = run("--help", folder=tmp_path)
    assert result.returncode == 0
    for name, (target, _) in COMMANDS.items():
        there = (ROOT / (target.split(":")[0].replace(".", "/") + ".py")).exists()
        assert (f"\n  {name} " in result.stdout) == there, name


def test_help_imports_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, sys\natexit.register(lambda: print([m for m in ('torch', 'networkx', 'rich', 'numpy') if m in sys.modules]))\n"
    )
    result = run("--help", folder=tmp_path, environment={"PYTHONPATH": f"{tmp_path}:{ROOT}"})
    assert result.stdout.splitlines()[-1] == "[]"


def test_version_and_no_arguments(tmp_path: Path) -> None:
    assert run("--version", folder=tmp_path).stdout.strip()
    assert "Usage" in run(folder=tmp_path).stdout


def test_list_names_every_operator(tmp_path: Path) -> None:
    text = run("list", folder=tmp_path).stdout
    assert all(f"\n{name} " in f"\n{text}" for name in names())
    listed = json.loads(run("list", "--json", folder=tmp_path).stdout)
    assert [o["name"] for o in listed["operators"]] == list(names())


def test_every_command_that_reports_takes_json(tmp_path: Path) -> None:
    status = json.loads(run("toolchain", "status", "--json", folder=tmp_path).stdout)
    assert status["compiler"] is None or {"version", "kind", "package"} == set(status["compiler"])
    assert {"obstacle", "root", "installed_bytes", "unfinished", "workers", "cached_results"} < set(status)
    labels = json.loads(run("calibrate", "--labels", "--json", folder=tmp_path).stdout)["labels"]
    assert "6/dk_dq" in labels
    for command in COMMANDS:
        words = [command] if command != "toolchain" else [command, "stop"]
        assert "--json" in run(*words, "--help", folder=tmp_path).stdout, command


def test_passes_lists_all_or_tells_one(tmp_path: Path) -> None:
    assert "retain-in-ub" in run("passes", folder=tmp_path).stdout
    one = run("passes", "retain-in-ub", folder=tmp_path).stdout
    assert "Refuses when" in one
    assert "values: str = ''" in one
    assert json.loads(run("passes", "retain-in-ub", "--json", folder=tmp_path).stdout)["passes"][0]["level"] == "plan"


def test_show_in_every_form(tmp_path: Path) -> None:
    text = run("show", "gemm", "--shape", "M=64", folder=tmp_path).stdout
    graph = graph_from_text(text)
    assert graph.dim("m").size == 64
    assert graph_from_json(run("show", "gemm", "--shape", "M=64", "--json", folder=tmp_path).stdout) == graph
    assert run("show", "gemm", "--as", "dot", folder=tmp_path).stdout.startswith('digraph "gemm"')
    assert run("show", "gemm", "--as", "mermaid", folder=tmp_path).stdout.startswith("flowchart TB")


def test_json_is_one_object_with_all_that_was_decided(tmp_path: Path) -> None:
    found = report("gqa_sink_bwd", "--target", "2", *SMALL, folder=tmp_path)
    assert (found["operator"], found["target"], len(kernels(found))) == ("gqa_sink_bwd", 2, 2)
    for k in kernels(found):
        assert {"name", "stages", "grid", "handoffs", "ascendc", "cost_us", "on_chip"} <= set(k)
        assert k["ascendc"] is None
        assert Path(str(k["source"])).is_file()
    assert Path(str(found["folder"])).samefile(tmp_path / "out" / "gqa_sink_bwd-2")


def test_the_folder_holds_all_and_can_be_read_back(tmp_path: Path) -> None:
    report("gqa_sink_bwd", "--target", "2", *SMALL, folder=tmp_path)
    folder = tmp_path / "out" / "gqa_sink_bwd-2"
    assert {p.name for p in folder.iterdir()} == {
        MARKER, "graph.txt", "host.py", "kernels", "plan.json", "plan.txt", "test_gqa_sink_bwd.py",
    }  # fmt: skip
    plan = from_json((folder / "plan.json").read_text())
    assert from_text((folder / "plan.txt").read_text(), plan.graph) == plan
    assert graph_from_text((folder / "graph.txt").read_text()) == plan.graph
    for path in folder.rglob("*.py"):
        compile(path.read_text(), str(path), "exec")


def test_a_folder_of_ours_is_replaced_as_a_whole(tmp_path: Path) -> None:
    report("gemm", "--out", "mine", folder=tmp_path)
    (tmp_path / "mine" / "stale.txt").write_text("from before")
    report("mlp", "--target", "3", "--out", "mine", folder=tmp_path)
    assert not (tmp_path / "mine" / "stale.txt").exists()
    assert (tmp_path / "mine" / "test_mlp.py").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_an_empty_folder_may_be_used(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    report("gemm", "--out", "mine", folder=tmp_path)
    assert (tmp_path / "mine" / "host.py").exists()


def test_the_table_says_what_matters(tmp_path: Path) -> None:
    result = run("gqa_sink_bwd", "--target", "2", *SMALL, "--target-code", "none", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    for text in (
        "gqa_sink_bwd in 2 kernels on 910B3",
        "of 196,352",
        "of 524,032",
        "of 131,072",
        "workspace_",
        "1 host sync",
        "Why this plan",
    ):
        assert text in result.stdout, text
    assert "1 kernel: --target 1 is impossible" in result.stdout
    assert "splitting into 3 kernels would take" in result.stdout
    assert "Written to out/gqa_sink_bwd-2" in result.stdout


@pytest.mark.parametrize("count", COUNTS)
def test_plan_files_are_used(count: int, tmp_path: Path) -> None:
    path = PLANS / f"gqa_sink_bwd-{count}.plan"
    found = report("gqa_sink_bwd", "--plan", str(path), *SMALL, folder=tmp_path)
    assert len(kernels(found)) == found["target"] == count
    assert (tmp_path / "out" / f"gqa_sink_bwd-{count}").is_dir()


def test_without_target_the_cheapest_count_is_taken(tmp_path: Path) -> None:
    best = report("gemm_bias_relu", "--shape", "M=512,N=512,K=512", folder=tmp_path)
    costs = [report("gemm_bias_relu", "--shape", "M=512,N=512,K=512", "--target", n, folder=tmp_path)["cost_us"] for n in ("1", "2")]
    assert best["cost_us"] == min(cast("list[float]", costs))


def test_an_operator_of_ones_own(tmp_path: Path) -> None:
    path = str(ROOT / "examples" / "own_operator.py")
    found = report(path, "--target", "2", "--shape", "tokens=512,dim=128,hidden=512", "--dtype", "bf16", folder=tmp_path)
    assert len(kernels(found)) == 2
    assert "bfloat16" in (tmp_path / "out" / "swiglu-2" / "host.py").read_text()
    assert report(f"{path}:swiglu", "--target", "1", "--shape", "tokens=512,dim=128,hidden=512", folder=tmp_path)["target"] == 1


def test_passes_are_shown_and_timed(tmp_path: Path) -> None:
    path = str(PLANS / "gqa_sink_bwd-4.plan")
    options = ("--fast", "--plan", path, *SMALL, "--passes", "name-workspaces,retain-in-ub")
    result = run("gqa_sink_bwd", *options, "--print-between-passes", "--time-passes", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "# after name-workspaces\nplan gqa_sink_bwd on 910B3" in result.stdout
    assert "retain-in-ub: " in result.stdout
    assert " ms" in result.stdout


def test_without_a_compiler_all_is_written_and_the_lack_is_told(tmp_path: Path) -> None:
    home = {"FUSION_PLAN_HOME": str(tmp_path / "home"), "FUSION_PLAN_NO_INSTALL": "1"}
    result = run("gemm", "--json", folder=tmp_path, environment=home)
    assert result.returncode == 0, result.stderr
    assert "no compiler" in result.stderr
    assert "fusion-plan toolchain install" in result.stderr
    found = cast("Object", json.loads(result.stdout))
    assert found["compiler_missing"]
    assert (tmp_path / "out" / "gemm-1" / "host.py").exists()


def test_flag_ids_are_read_from_the_generated_code() -> None:
    code = """
      tl::ascend::copy_l0c_to_gm<float, float, layout::RowMajor, 64, 64, 0>(workspace_dp[(cid * 4096)], dp_l0c[0], 64, 64, 64);
      AscendC::CrossCoreSetFlag<2, PIPE_FIX>(0);
      tl::ascend::copy_ub_to_gm<half, 64, 32>(workspace_p[((cid * 4096) + (vid * 2048))], p_ub[0], 64, 32, 64);
      AscendC::SetFlag<AscendC::HardEvent::V_MTE2>(3);
      AscendC::CrossCoreSetFlag<2, PIPE_MTE3>(2);
    """
    assert flag_ids(code) == {"workspace_dp": 0, "workspace_p": 2}
