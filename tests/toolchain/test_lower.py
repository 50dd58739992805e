"""Lowering with the real compiler: what comes out, for which kernels, and what errors say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fusion.toolchain import KernelSource, Lowered, OnChip, Param, TirPass, catlass_dir, lower, templates_dir
from tests.toolchain.samples import kernel, kernel_text, lower_one

pytestmark = pytest.mark.usefixtures("real")


@pytest.fixture(scope="module")
def relay(real: Path) -> Lowered:
    (lowered,) = lower([kernel("relay_add")], ("ascendc", "pto"))
    return lowered


def test_both_targets_come_out_with_cube_and_vector_parts(relay: Lowered) -> None:
    assert relay.error is None
    assert relay.ascendc is not None and relay.pto is not None
    assert "if ASCEND_IS_AIC" in relay.ascendc and "if ASCEND_IS_AIV" in relay.ascendc
    assert "CrossCoreSetFlag" in relay.ascendc
    assert "TASSIGN" in relay.pto or "pto" in relay.pto
    assert "main_kernel" in relay.ascendc and relay.entry == "main"
    assert "def main" in relay.tir


def test_launch_parameters_are_in_order_with_the_compilers_own_last(relay: Lowered) -> None:
    assert relay.params == (
        Param("A", "float16", (128, 64), "tensor"),
        Param("B", "float16", (64, 64), "tensor"),
        Param("D", "float32", (128, 64), "tensor"),
        Param("C", "float32", (128, 64), "output"),
        Param("workspace_1", "float32", (2, 64, 64), "relay"),
    )
    assert (relay.blocks, relay.threads, relay.task_type) == (2, 2, "MIX_AIC_1_2")


def test_on_chip_places_are_those_of_memory_planning(relay: Lowered) -> None:
    assert OnChip("s_ub", "shared", 8192, 8192) in relay.on_chip
    assert {place.name for place in relay.on_chip} == {"a_l1", "b_l1", "acc_l0c", "s_ub", "d_ub"}


def test_factory_arguments_change_the_kernel(relay: Lowered) -> None:
    wider = lower_one(replace(kernel("relay_add"), args={"blocks": 3}))
    assert wider.blocks == 3
    assert wider.params[0].shape == (192, 64)


def test_symbolic_sizes_and_scalars_are_parameters() -> None:
    lowered = lower_one(kernel("open_rows"))
    assert lowered.blocks == "rows // 64"
    assert lowered.params == (
        Param("A", "float32", ("rows", 64), "tensor"),
        Param("B", "float32", ("rows", 64), "output"),
        Param("scratch", "float32", (64, 64), "workspace"),
        Param("count", "int32", (), "scalar"),
        Param("rows", "int64", (), "scalar"),
    )


def test_pass_configs_come_from_the_decorator_unless_given() -> None:
    as_decorated = lower_one(kernel("open_rows"))
    synchronised = lower_one(replace(kernel("open_rows"), pass_configs={"tl.ascend_auto_sync": True}))
    assert as_decorated.ascendc is not None and "WaitFlag" not in as_decorated.ascendc
    assert synchronised.ascendc is not None and "WaitFlag" in synchronised.ascendc


def test_a_prim_func_without_decorator_is_lowered_in_developer_mode() -> None:
    lowered = lower_one(kernel("unnamed_handoff"))
    assert lowered.entry == "doubled_gemm"
    assert lowered.task_type == "MIX_AIC_1_2"


def test_the_same_kernels_give_the_same_text_in_any_order_and_company(relay: Lowered) -> None:
    others = [replace(kernel("relay_add"), name="again"), replace(kernel("unnamed_handoff"), name="other")]
    again, _ = lower(others, ("ascendc", "pto"), jobs=1)
    assert not again.cached
    assert (again.ascendc, again.pto, again.tir) == (relay.ascendc, relay.pto, relay.tir)


def test_results_are_in_the_order_of_the_kernels() -> None:
    names = ["read_twice", "relay_add", "too_big_for_ub", "unnamed_handoff"]
    assert [lowered.name for lowered in lower([kernel(name) for name in names])] == names


def test_a_crash_names_kernel_signal_and_pass_and_spoils_nothing_else() -> None:
    crashed, fine = lower([kernel("too_big_for_ub"), replace(kernel("relay_add"), name="after a crash")])
    assert crashed.name == "too_big_for_ub" and crashed.ascendc is None
    assert crashed.error is not None
    assert (crashed.error.kind, crashed.error.pass_name) == ("crash", "AscendMemoryPlanning")
    assert crashed.error.message == "the compiler died of SIGSEGV in AscendMemoryPlanning"
    assert fine.error is None and fine.ascendc


def test_a_fatal_error_is_the_compilers_own_line() -> None:
    lowered = lower_one(kernel("read_twice"))
    assert lowered.error is not None
    assert (lowered.error.kind, lowered.error.pass_name) == ("fatal", "CombineCV")
    assert "workspace_a: cube has 2, vec has 1" in lowered.error.message
    assert "\n" not in lowered.error.message
    assert "ascend_combinecv" in lowered.error.details


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("T.tile.add", "T.tile.plus", "line 32: module 'tilelang.language.ascend_tile' has no attribute 'plus'"),
        ("s_ub, s_ub, d_ub", "s_ub, s_ub, e_ub", "line 32: Undefined variable: e_ub"),
        ("def main(", "def main((", "line 15: '(' was never closed (kernel.py, line 15)"),
        ("import tilelang\n", "import tilelang, absent_module\n", "line 1: No module named 'absent_module'"),
        ("import tilelang\n", "import tilelang, sys; sys.exit(4)\n", "line 1: the module leaves Python (exit status 4)"),
    ],
)
def test_mistakes_in_the_kernel_name_its_line(old: str, new: str, message: str) -> None:
    lowered = lower_one(KernelSource("broken", kernel_text("relay_add").replace(old, new)))
    assert lowered.error is not None
    assert (lowered.error.kind, lowered.error.message) == ("frontend", message)


def test_a_missing_entry_and_wrong_arguments_say_what_there_is() -> None:
    no_entry, no_argument = lower([replace(kernel("relay_add"), entry="main"), replace(kernel("relay_add"), args={"block": 2})])
    assert no_entry.error is not None and "kernels found: relay_add" in no_entry.error.message
    assert no_argument.error is not None and "unexpected keyword argument 'block'" in no_argument.error.message


def test_two_kernels_in_a_module_need_an_entry() -> None:
    source = kernel_text("unnamed_handoff") + "\n\nsecond = doubled_gemm\n"
    lowered, chosen = lower([KernelSource("two", source), KernelSource("two", source, entry="second")])
    assert lowered.error is not None and "found 2: doubled_gemm, second" in lowered.error.message
    assert chosen.error is None


def test_the_compilers_prints_end_up_in_the_log() -> None:
    noise = "import os\nos.write(1, b'{\"id\": 0, \"result\": {}}\\n')\nprint('spoken')\n"
    lowered = lower_one(KernelSource("noisy", noise + kernel_text("unnamed_handoff")))
    assert lowered.error is None
    assert "spoken" in lowered.log and '"result"' in lowered.log


def test_a_kernel_that_never_ends_is_stopped() -> None:
    endless = KernelSource("endless", "while True:\n    pass\n")
    stopped, fine = lower([endless, replace(kernel("unnamed_handoff"), name="after a timeout")], timeout=5)
    assert stopped.error is not None
    assert (stopped.error.kind, stopped.error.message) == ("timeout", "the compiler was still running after 5 s in frontend")
    assert fine.error is None


def test_tir_is_printed_after_the_passes_asked_for() -> None:
    lowered = lower_one(kernel("relay_add"), print_after=("CombineCV", "AscendSyncInsert"))
    (combined, before), (inserted, after) = lowered.dumps
    assert (combined, inserted) == ("CombineCV", "AscendSyncInsert")
    assert "resource_scope" in before and "auto_set_flag" not in before and "auto_set_flag" in after


def test_a_pass_of_ours_runs_where_it_is_put() -> None:
    source = "def run(mod, options):\n    return mod, [{'flags': mod.script().count('set_cross_flag'), **options}]\n"
    before = TirPass("count-before", source, "before CombineCV", {"tag": 1})
    after = TirPass("count-after", source, "after CombineCV")
    lowered = lower_one(kernel("relay_add"), before, after)
    assert lowered.findings == ({"pass": "count-before", "flags": 0, "tag": 1}, {"pass": "count-after", "flags": 1})


@pytest.mark.parametrize(
    ("source", "at", "message"),
    [
        ("def run(mod, options):\n    raise ValueError('no such axis')\n", "before CombineCV", "no such axis"),
        ("def go(mod, options):\n    return mod, []\n", "before CombineCV", "pass mine: its file has no function `run(mod, options)`"),
        ("def run(mod, options):\n    return mod, []\n", "CombineCV", "pass mine: place 'CombineCV' is not 'before PASS' or 'after PASS'"),
        ("def run(mod, options):\n    return mod, []\n", "after Combine", "pass mine never ran: no compiler pass is called 'Combine'"),
    ],
)
def test_a_broken_pass_of_ours_is_named(source: str, at: str, message: str) -> None:
    lowered = lower_one(kernel("unnamed_handoff"), TirPass("mine", source, at))
    assert lowered.error is not None
    assert lowered.error.kind == "fatal" and message in lowered.error.message


def test_a_raising_pass_of_ours_is_the_pass_of_the_error() -> None:
    broken = TirPass("mine", "def run(mod, options):\n    raise ValueError('no')\n", "before codegen")
    lowered = lower_one(kernel("unnamed_handoff"), broken)
    assert lowered.error is not None and lowered.error.pass_name == "mine"


def test_the_template_folders_hold_what_generated_code_includes() -> None:
    assert (templates_dir() / "tl_templates/ascend/common.h").is_file()
    assert (catlass_dir() / "catlass").is_dir()
