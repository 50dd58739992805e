"""The page in a real browser, and the trace against the public format."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fusion.calibrate import measured
from fusion.compare.rows import Entry, judged
from fusion.device import load
from fusion.emit.emit import emit
from fusion.output.summary import summarize
from fusion.plan.planner import Planner
from fusion.report.html import page
from fusion.report.perfetto import trace_json
from fusion.timeline.floor import floor
from fusion.timeline.launch import time_launch
from fusion.timeline.program import PlanTime
from fusion.timeline.report import kernel_time
from kernels.attention_sink import gqa_sink_bwd


@pytest.fixture(scope="module")
def entries() -> list[Entry]:
    """Timelines of two published variants, drawn with plans of a small shape."""
    device, graph = load(), gqa_sink_bwd(heads=8, groups=2, seq_len=512, window=128)
    found = list[Entry]()
    for count, labels in ((6, ("6/qk_softmax", "6/dv_dp_ds", "6/dk_dq")), (2, ("2/bwd",))):
        times = tuple(kernel_time(k, time_launch(measured.kernel(k), device), device) for k in labels)
        program = emit(Planner(graph).plan(count, 1)[0].plan)
        time = PlanTime(times, 0.0, 0.0, floor(graph, device))
        summary = summarize(program, device.limits(), {})
        found.append(Entry(f"{count} kernels", count, time.us, None, 0.08, time.floor.us, program, summary, time, 5000.0 + count))
    return judged(found)


def test_shares_and_classes_are_sound(entries: list[Entry]) -> None:
    for kernel in (k for e in entries if e.time for k in e.time.kernels):
        assert kernel.bottleneck in ("sync-bound", "memory-bound", "compute-bound", "start-bound", "mixed")
        assert all(0 < v <= 1.0 for v in kernel.busy.values()) and all(0 < v <= 1.0 for v in kernel.waits.values())
        assert 0 < kernel.tflops < load().peak_tflops and kernel.hbm_bytes <= kernel.gm_bytes
        assert 0 < sum(kernel.critical_us.values()) <= kernel.us


def test_the_trace_has_the_public_form(entries: list[Entry]) -> None:
    events = json.loads(trace_json(entries[0]))["traceEvents"]
    assert {e["ph"] for e in events} == {"X", "M"}
    for e in events:
        assert isinstance(e["pid"], int) and isinstance(e["tid"], int) and isinstance(e["name"], str)
        if e["ph"] == "X":
            assert e["ts"] >= 0 and e["dur"] >= 0
        else:
            assert e["name"] in ("process_name", "thread_name") and e["args"]["name"]


def test_instructions_of_a_pipe_do_not_overlap(entries: list[Entry]) -> None:
    lanes: dict[tuple[int, int], float] = {}
    for e in (e for e in json.loads(trace_json(entries[1]))["traceEvents"] if e["ph"] == "X"):
        at = (e["pid"], e["tid"])
        assert e["ts"] >= lanes.get(at, 0.0) - 1e-3
        lanes[at] = e["ts"] + e["dur"]


def test_the_page_loads_nothing_from_elsewhere(entries: list[Entry]) -> None:
    text = page("gqa_sink_bwd", entries, ["a < b"])
    assert not re.findall(r'(?:src|href)="', text) and "a &lt; b" in text
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed (apt-get install chromium)")
def test_the_page_draws_in_a_browser(entries: list[Entry], tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(page("gqa_sink_bwd", entries, ["why"]), encoding="utf-8")
    command = [
        "chromium",
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--virtual-time-budget=3000",
    ]
    done = subprocess.run([*command, "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=90, check=True)
    assert 'data-ready="1"' in done.stdout
    assert len(re.findall(r'<rect class="bar', done.stdout)) == 2
    assert len(re.findall(r'<rect class="(?:cube|vector)"', done.stdout)) > 10
    assert "Critical path" in done.stdout
