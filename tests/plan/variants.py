"""The shipped plan files of gqa_sink_bwd."""

from __future__ import annotations

from pathlib import Path

from fusion.graph import StageGraph
from fusion.plan.text import from_text
from fusion.plan.types import Plan
from kernels.attention_sink import gqa_sink_bwd

PLANS = Path(__file__).parents[2] / "kernels" / "plans"
COUNTS = (9, 6, 5, 4, 2)


def small() -> StageGraph:
    return gqa_sink_bwd(heads=4, groups=2, seq_len=256, window=128)


def load(count: int, graph: StageGraph | None = None) -> Plan:
    path = PLANS / f"gqa_sink_bwd-{count}.plan"
    return from_text(path.read_text(), graph or small(), str(path))
