"""Generated statements lead back to the TileLang line and the stage."""

from __future__ import annotations

import pytest

from fusion.graph import StageGraph
from fusion.verify.places import origin
from fusion.verify.run import lower_program
from tests.verify.conftest import program


@pytest.mark.parametrize(
    ("part", "stage", "start"),
    [
        ("copy_l0c_to_gm<float, float, layout::RowMajor, 64, 64, 0>(workspace_s[", "qk", "T.copy(s_l0c, workspace_s["),
        ("(s_ub[0], workspace_s[", "softmax", "T.copy(workspace_s["),
        ("(p_cast_l1[0], workspace_p_cast[", "dv", "T.copy(workspace_p_cast["),
        ("atomic_add_l0c_to_gm", "dv", "T.tile.atomic_add(dv_acc["),
    ],
)
def test_statements_of_the_fused_backward(graph: StageGraph, part: str, stage: str, start: str) -> None:
    emitted = program(graph, 4)
    kernel = next(k for k in emitted.kernels if "qk" in {s for _, s in k.stage_lines})
    text = str(lower_program(emitted)[kernel.name].ascendc)
    line = next(x for x in text.splitlines() if part in x)
    found = origin(kernel, line)
    assert found is not None and found.stage == stage and found.text.startswith(start)


def test_flags_and_loops_have_no_line_of_their_own(graph: StageGraph) -> None:
    kernel = program(graph, 4).kernels[0]
    assert origin(kernel, "AscendC::CrossCoreWaitFlag(2);") is None
