"""`fusion-plan verify`: table, JSON, exit status, and verdicts that are remembered by content."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from fusion.cli.verify import verify

SHAPE = ["--shape", "heads=2,groups=2,seq_len=96,dim=64"]


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(verify, ["gqa_sink_bwd", *SHAPE, *arguments])
    return result.exit_code, result.stdout


def test_json_is_one_object_with_verdict_outputs_and_findings() -> None:
    status, text = run("--target", "2", "--json")
    found = json.loads(text)
    assert status == 0 and found["verdict"] == "clean" and found["findings"] == []
    assert {"ratio", "max_abs"} <= set(found["outputs"]["dK"])


def test_a_plan_that_races_gives_status_1_and_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fusion.verify import session
    from fusion.verify.run import Located, PlanVerdict

    original = session.verify_program

    def racing(*args: object) -> PlanVerdict:
        from fusion.simulator import Finding

        clean = original(*args)  # type: ignore[arg-type]
        finding = Finding("read-after-write", "race", "error", "k", "GM", "workspace_s", "made up by this test")
        return PlanVerdict("race", clean.outputs, (Located("k", finding, None, None),), 0.0)

    monkeypatch.setattr(session, "verify_program", racing)
    monkeypatch.setattr(session, "remembered", lambda name: None)
    monkeypatch.setattr(session, "remember", lambda name, verdict: None)
    status, text = run("--target", "2")
    assert status == 1 and "made up by this test" in text and "verdict: race" in text


def test_a_second_run_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("--target", "2")[0] == 0
    from fusion.verify import session

    def never(*args: object) -> None:
        raise AssertionError("ran again")

    monkeypatch.setattr(session, "verify_program", never)
    assert run("--target", "2")[0] == 0


def test_without_a_compiler_that_works_it_cannot_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    from fusion.errors import FusionError
    from fusion.verify import session

    def broken(*args: object) -> None:
        raise FusionError("no g++", remedy="install it")

    monkeypatch.setattr(session, "lower_program", broken)
    status, text = run("--target", "2")
    assert status == 2 and "no g++" in text
