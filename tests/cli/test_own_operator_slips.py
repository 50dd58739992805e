"""Slips of an own operator: no graph, a size that no device holds, counts that it cannot have."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusion.cli.compare import possible_counts
from fusion.cli.operators import build
from fusion.errors import FusionError
from kernels.attention_sink import gqa_sink_bwd
from kernels.linear import gemm


def test_a_function_that_gives_no_graph_is_told_to(tmp_path: Path) -> None:
    file = tmp_path / "slip.py"
    file.write_text("from fusion.graph import operator\n\n\n@operator\ndef slip(n: int = 4):\n    return None\n")
    with pytest.raises(FusionError, match=r"slip gives NoneType, not a graph") as caught:
        build(str(file))
    assert "return g.build()" in caught.value.remedy


def test_a_tensor_larger_than_a_device_is_refused_at_once() -> None:
    with pytest.raises(FusionError, match=r"A takes \d+ GB"):
        build("gemm", ("M=99999999999",))


def test_compare_asks_for_counts_that_are_possible() -> None:
    assert possible_counts(gemm()) == (2, 1)
    assert possible_counts(gqa_sink_bwd(seq_len=256)) == (9, 6, 5, 4, 3, 2)
