"""Each sample kernel has one mistake, or none: the verdict, the rule that names the culprit, and its line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from fusion.check import sarif, text
from fusion.check.driver import Options, check_sources, read_source
from fusion.check.fix import fix
from fusion.check.report import FileReport, exit_code
from tests.check.conftest import EXAMPLES, check_text, only

CLEAN = ("handoff", "power", "ranked", "relay")
BROKEN = {
    "not_combined": ("refused", "sync-without-combine", "AUTO_CV_COMBINE: False"),
    "odd_sum": ("wrong", "fractal-alignment", "a_l1 = T.alloc_L1"),
    "read_again": ("refused", "unequal-counts", "T.copy(workspace_x[0:32, 0:48], x_l1)"),
    "row_update": ("wrong", "relay-inside-rows", "c_ub[i, j] = "),
    "shared_fragment": ("refused", "one-fragment-one-relay", "T.copy(y_l0c, second_ub)"),
    "some_blocks": ("deadlock", "guarded-handoff", "T.copy(y_l0c, workspace_y"),
    "stream": ("race", "single-slot-one-way", "T.copy(y_l0c, y_ub)"),
    "twelve_handoffs": ("refused", "flags-fit", "T.copy(y11_l0c, y11_ub)"),
    "unnamed_handoff": ("race", "workspace-names", "T.copy(staged["),
    "wide_result": ("refused", "memory-fits", "c_l0c = T.alloc_L0C"),
    "wide_rows": ("refused", "memory-fits", "x_ub = T.alloc_shared"),
}
FIXABLE = ("not_combined", "read_again", "shared_fragment", "unnamed_handoff")


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_kernel_has_no_finding(samples: Mapping[str, FileReport], name: str) -> None:
    report = only(samples[name])
    assert (report.verdict, report.findings) == ("clean", ())
    assert any("compared with the statements' meaning" in note for note in report.notes)


@pytest.mark.parametrize("name", BROKEN)
def test_a_mistake_is_found_at_its_line(samples: Mapping[str, FileReport], name: str) -> None:
    verdict, rule, line = BROKEN[name]
    report = only(samples[name])
    assert report.verdict == verdict
    culprit = next(finding for finding in report.findings if finding.rule == rule)
    assert culprit.severity == "error" and culprit.remedy and culprit.why
    assert line in samples[name].text.splitlines()[culprit.line - 1]


def test_every_sample_is_expected(samples: Mapping[str, FileReport]) -> None:
    assert sorted(samples) == sorted((*CLEAN, *BROKEN))


def test_the_run_confirms_what_the_rules_foretell(samples: Mapping[str, FileReport]) -> None:
    rules = {name: {f.rule for f in only(report).findings} for name, report in samples.items()}
    assert "cross-core-read-after-write" in rules["stream"]
    assert {"deadlock"} <= rules["some_blocks"]
    assert {"overlapping-buffers", "wrong-numbers"} <= rules["odd_sum"]
    assert "wrong-numbers" in rules["row_update"]


def test_a_crash_of_the_compiler_is_explained(samples: Mapping[str, FileReport]) -> None:
    report = only(samples["wide_rows"])
    assert "196608 B of UB are in use at once, there are 196352 B" in report.findings[0].message
    assert all(name in report.findings[0].message for name in ("x_ub", "e_ub", "y_ub"))
    assert any("SIGSEGV" in note for note in report.notes)


def test_both_places_of_unequal_counts_are_shown(samples: Mapping[str, FileReport]) -> None:
    finding = only(samples["read_again"]).findings[0]
    assert [place.label for place in finding.places] == ["written here", "read here", "read here"]


@pytest.fixture(scope="module")
def fixed(samples: Mapping[str, FileReport]) -> Mapping[str, tuple[FileReport, tuple[str, ...]]]:
    results = {name: fix(samples[name]) for name in FIXABLE}
    return {name: (check_text(result.text, f"{name}.py"), result.done) for name, result in results.items()}


@pytest.mark.parametrize("name", FIXABLE)
def test_a_fix_makes_the_kernel_clean(fixed: Mapping[str, tuple[FileReport, tuple[str, ...]]], name: str) -> None:
    report, done = fixed[name]
    assert len(done) == 1
    assert (only(report).verdict, only(report).findings) == ("clean", ())


def test_what_cannot_be_fixed_is_said(samples: Mapping[str, FileReport]) -> None:
    result = fix(samples["stream"])
    assert result.text == samples["stream"].text and not result.done
    assert any("single-slot-one-way is not fixed" in line for line in result.left)


def test_people_see_the_source_with_the_place_marked(samples: Mapping[str, FileReport]) -> None:
    shown = "\n".join(text.lines(samples["unnamed_handoff"]))
    assert "error[workspace-names]: staged goes vector->cube" in shown
    assert "30 | T.copy(staged[0:32, 0:48], x_l1)" in shown and "^^^^" in shown
    assert "= fix: rename it to workspace_staged" in shown


def test_sarif_has_every_finding_with_its_rule(samples: Mapping[str, FileReport]) -> None:
    data = json.loads(json.dumps(sarif.to_sarif(list(samples.values()), "1")))
    (run,) = data["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert data["version"] == "2.1.0" and {result["ruleId"] for result in run["results"]} == rules
    assert len(run["results"]) == sum(len(only(report).findings) for report in samples.values())


def test_the_summary_counts_verdicts(samples: Mapping[str, FileReport]) -> None:
    last = list(text.summary(list(samples.values())))[-1]
    assert last == "15 files, 15 kernels: 4 clean, 1 deadlock, 2 race, 6 refused, 2 wrong"
    assert exit_code(only(report) for report in samples.values()) == 1


# ---- the examples


def test_the_examples_are_clean() -> None:
    reports = check_sources([read_source(path) for path in sorted(EXAMPLES.glob("*.py"))], Options())
    assert [report.path.stem for report in reports] == ["flash_attention", "gated_delta_chunks", "gemm_epilogue", "layer_norm"]
    assert all((only(report).verdict, only(report).findings) == ("clean", ()) for report in reports)
    assert all(any("compared with" in note for note in only(report).notes) for report in reports)


BREAKS = {
    "flash_attention": ("workspace_p", "p_gm", "race", "workspace-names"),
    "gated_delta_chunks": (
        "                T.copy(workspace_u[cid, 0:chunk, 0:dim_v], u_l1)\n",
        "                T.copy(workspace_u[cid, 0:chunk, 0:dim_v], u_l1)\n" * 2,
        "refused",
        "unequal-counts",
    ),
    "gemm_epilogue": (
        "            T.copy(c_l0c, workspace_c[cid, 0:block_M, 0:block_N])\n",
        "            if by > 0:\n                T.copy(c_l0c, workspace_c[cid, 0:block_M, 0:block_N])\n",
        "deadlock",
        "guarded-handoff",
    ),
    "layer_norm": ("columns=256", "columns=1536", "refused", "memory-fits"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_an_example_broken_in_one_way_is_found(name: str) -> None:
    before, after, verdict, rule = BREAKS[name]
    source = (EXAMPLES / f"{name}.py").read_text()
    assert before in source
    report = only(check_text(source.replace(before, after), f"{name}.py"))
    assert report.verdict == verdict
    assert rule in {finding.rule for finding in report.errors}


# ---- the cases that were handed over, where they are


CASES = Path(__file__).parents[3] / "shared/cases"


@pytest.mark.skipif(not (CASES / "cases.json").exists(), reason="the cases are not here")
def test_the_shared_cases() -> None:
    expected = {name: entry["verdict"] for name, entry in json.loads((CASES / "cases.json").read_text()).items()}
    reports = check_sources([read_source(CASES / f"{name}.py") for name in expected], Options())
    assert {report.path.stem: only(report).verdict for report in reports} == expected
    assert all(not only(report).findings for report in reports if expected[report.path.stem] == "clean")
