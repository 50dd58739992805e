"""The TIR pass workspace-names inside the real pipeline."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import passes
from fusion.toolchain import TirPass
from tests.toolchain.samples import kernel, lower_one

pytestmark = pytest.mark.usefixtures("real")

SOURCE = (Path(passes.__file__).parent / "tir/workspace_names.py").read_text(encoding="utf-8")


def workspace_names(**options: object) -> TirPass:
    return TirPass("workspace-names", SOURCE, "before CombineCV", options)


def test_a_crossing_buffer_of_another_name_is_reported_and_left() -> None:
    lowered = lower_one(kernel("unnamed_handoff"), workspace_names())
    (finding,) = lowered.findings
    assert (finding["buffer"], finding["writer"], finding["reader"], finding["renamed_to"]) == ("middle", "vector", "cube", "")
    assert lowered.ascendc is not None and "CrossCoreSetFlag" not in lowered.ascendc


def test_renaming_makes_the_compiler_order_the_handoff() -> None:
    lowered = lower_one(kernel("unnamed_handoff"), workspace_names(rename=True))
    (finding,) = lowered.findings
    assert finding["renamed_to"] == "workspace_middle"
    assert [(param.name, param.role) for param in lowered.params][2] == ("workspace_middle", "workspace")
    code = lowered.ascendc or ""
    assert "CrossCoreSetFlag<2, PIPE_MTE3>(0)" in code and "CrossCoreWaitFlag(0)" in code
    assert "GlobalTensor<half> middle" not in code


def test_a_taken_name_is_not_used_twice() -> None:
    source = kernel("unnamed_handoff").source.replace("    C: T", '    workspace_middle: T.Tensor((64, 64), "float"),\n    C: T')
    lowered = lower_one(replace(kernel("unnamed_handoff"), source=source), workspace_names(rename=True))
    assert [param.name for param in lowered.params] == ["A", "B", "workspace_middle_2", "workspace_middle", "C"]


def test_named_and_relayed_buffers_are_left_alone() -> None:
    named = kernel("unnamed_handoff").source.replace("middle", "workspace_p")
    assert lower_one(replace(kernel("unnamed_handoff"), source=named), workspace_names(rename=True)).findings == ()
    assert lower_one(kernel("relay_add"), workspace_names(rename=True)).findings == ()


def test_an_unknown_option_is_refused() -> None:
    lowered = lower_one(kernel("unnamed_handoff"), workspace_names(renam=True))
    assert lowered.error is not None
    assert "workspace-names has no option 'renam'" in lowered.error.message
