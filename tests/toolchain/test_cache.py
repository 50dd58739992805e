"""The disk cache of lowerings: what its keys depend on, and what it keeps."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from fusion.toolchain import KernelSource, TirPass, cache, layout, lower
from fusion.toolchain.lowering import _job  # pyright: ignore[reportPrivateUsage]
from fusion.toolchain.model import Target

KERNEL = KernelSource("k", "text", "entry", {"a": 1, "b": [2, 3]}, {"tl.ascend_auto_sync": True})
PASS = TirPass("p", "def run(): ...", "before CombineCV", {"rename": True})


def key(kernel: KernelSource, target: Target = "ascendc", tir_pass: TirPass = PASS, platform: str = "A2", version: str = "1") -> str:
    return cache.key(_job(kernel, target, [tir_pass], [], platform), version)


def test_every_input_of_a_lowering_changes_its_key() -> None:
    keys = [
        key(KERNEL),
        key(replace(KERNEL, source="other")),
        key(replace(KERNEL, entry="other")),
        key(replace(KERNEL, args={"a": 2, "b": [2, 3]})),
        key(replace(KERNEL, pass_configs={"tl.ascend_auto_sync": False})),
        key(replace(KERNEL, pass_configs=None)),
        key(KERNEL, target="pto"),
        key(KERNEL, tir_pass=replace(PASS, source="other")),
        key(KERNEL, tir_pass=replace(PASS, options={"rename": False})),
        key(KERNEL, tir_pass=replace(PASS, at="after CombineCV")),
        key(KERNEL, platform="A3"),
        key(KERNEL, version="2"),
    ]
    assert len(set(keys)) == len(keys)


def test_the_order_in_which_arguments_are_written_does_not_matter() -> None:
    assert key(KERNEL) == key(replace(KERNEL, args={"b": [2, 3], "a": 1}))


def test_a_change_of_the_workers_code_changes_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key(KERNEL)
    (tmp_path / "job.py").write_text("changed", encoding="utf-8")
    monkeypatch.setattr(layout, "WORKER", tmp_path)
    assert key(KERNEL) != before


@pytest.mark.usefixtures("home")
def test_what_is_put_is_got_and_a_damaged_file_is_nothing() -> None:
    assert cache.get("abc") is None
    cache.put("abc", {"source": "x", "error": None})
    assert cache.get("abc") == {"source": "x", "error": None}
    (layout.results() / "abc.json").write_text('{"source": ', encoding="utf-8")
    assert cache.get("abc") is None


@pytest.mark.usefixtures("home")
def test_only_errors_that_the_input_causes_are_kept() -> None:
    kinds = ("fatal", "frontend", "crash", "timeout", "unavailable")
    for kind in kinds:
        cache.put(kind, {"error": {"kind": kind}})
    assert [kind for kind in kinds if cache.get(kind) is not None] == ["fatal", "frontend"]


@pytest.mark.usefixtures("home")
def test_the_oldest_results_go_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_RESULTS", 5)
    monkeypatch.setattr(cache, "KEPT_RESULTS", 3)
    for number in range(6):
        cache.put(f"r{number}", {"error": None})
        os.utime(layout.results() / f"r{number}.json", (number, number))
    cache.prune()
    assert sorted(path.stem for path in layout.results().iterdir()) == ["r3", "r4", "r5"]


@pytest.mark.usefixtures("home")
def test_a_cache_that_cannot_be_written_is_no_error(home: Path) -> None:
    home.mkdir()
    (home / "cache").write_text("a file where the folder should be", encoding="utf-8")
    cache.put("abc", {"error": None})
    assert cache.count() == 0


@pytest.mark.usefixtures("home")
def test_cached_results_are_given_where_there_is_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    from fusion.toolchain import discover, recipe

    monkeypatch.setattr(discover, "expected_kind", lambda: None)
    stored = {"source": "code", "tir": "", "entry": "main", "params": [], "blocks": 1, "threads": None, "task_type": ""}
    cache.put(
        cache.key(_job(KERNEL, "ascendc", (), (), "A2"), recipe.VERSION),
        {**stored, "on_chip": [], "findings": [], "dumps": [], "error": None, "seconds": 1.0},
    )
    known, unknown = lower([KERNEL, replace(KERNEL, source="new")])
    assert (known.ascendc, known.cached, known.error) == ("code", True, None)
    assert unknown.error is not None and unknown.error.kind == "unavailable"
