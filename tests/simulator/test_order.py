"""Every class of finding has a small kernel that triggers it, next to a control that does not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fusion.simulator import Buffer, Finding, KernelRun, run_kernel
from tests.simulator.handwritten import BARRIER, flag, kernel, load, store

N = 64
A = np.arange(1, N + 1, dtype=np.float32)


def run(text: str, *extra: Buffer, blocks: int | None = None, **options: object) -> KernelRun:
    buffers = [Buffer("A", "float32", (N,), A), *extra, Buffer("C", "float32", (N,), role="out")]
    return run_kernel(text, "test", buffers, blocks=blocks, **options)  # pyright: ignore[reportArgumentType]


def simple(body: str, **options: object) -> KernelRun:
    """UB tensors x, y, z of N floats; GM A in, C out."""
    text = kernel({"A": "float", "C": "float"}, {"x": ("float", N), "y": ("float", N), "z": ("float", N)}, body)
    return run(text, **options)


def only(found: KernelRun, rule: str) -> Finding:
    """The one error of a run, which must be of this rule."""
    assert [f.rule for f in found.errors] == [rule], "\n".join(map(str, found.findings))
    return found.errors[0]


LOAD = load("x", "A", N, "float")
STORE = store("C", "y", N, "float")
CLEAN = f"{LOAD}\n{flag('MTE2_V')}\nAscendC::Exp(y, x, {N});\n{flag('V_MTE3')}\n{STORE}"


def test_clean_control() -> None:
    found = simple(CLEAN)
    assert found.findings == () and found.verdict == "clean"
    np.testing.assert_allclose(found.outputs["C"], np.exp(A), rtol=1e-6)


def test_read_after_write_race() -> None:
    finding = only(simple(CLEAN.replace(flag("MTE2_V"), "")), "read-after-write")
    assert finding.kind == "race" and finding.buffer == "x" and finding.memory == "UB"
    assert finding.first and finding.second and "DataCopyPad" in finding.first.text and "Exp" in finding.second.text


def test_write_after_read_race_names_the_iteration() -> None:
    loop = f"for (int32_t i = 0; i < 3; ++i) {{\n{CLEAN}\n}}"
    found = simple(loop)
    assert {f.rule for f in found.errors} == {"write-after-read"}
    assert {f.buffer for f in found.errors} == {"x", "y"}
    assert any(f.second and f.second.loops == "i=1" and f.first and f.first.loops == "i=0" for f in found.errors)
    fixed = loop.replace(f"\n{LOAD}", f"\n{flag('V_MTE2', 1)}\n{LOAD}").replace("AscendC::Exp", f"{flag('MTE3_V', 2)}\nAscendC::Exp")
    assert simple(fixed).verdict == "clean"


def test_write_after_write_race() -> None:
    body = f"{LOAD}\nAscendC::Duplicate(x, 1.0f, {N});\n{BARRIER}\nAscendC::Exp(y, x, {N});\n{BARRIER}\n{STORE}"
    assert {f.rule for f in simple(body).errors} == {"write-after-write"}


def test_scalar_read_without_a_flag() -> None:
    body = f"{LOAD}\nfloat v = x.GetValue(3);\n{BARRIER}\nAscendC::Adds(y, x, v, {N});\n{BARRIER}\n{STORE}"
    finding = only(simple(body), "read-after-write")
    assert finding.second and finding.second.unit == "AIV0.S"
    assert simple(body.replace("\nfloat", f"\n{flag('MTE2_S')}\nfloat")).verdict == "clean"


def test_scalar_store_is_not_ordered_by_issue() -> None:
    body = f"for (int32_t i = 0; i < {N}; ++i) {{\nx.SetValue(i, 2.0f);\n}}\nAscendC::Exp(y, x, {N});\n{BARRIER}\n{STORE}"
    assert only(simple(body), "read-after-write").kind == "race"
    assert simple(body.replace("\nAscendC::Exp", f"\n{flag('S_V')}\nAscendC::Exp")).verdict == "clean"


def test_same_pipe_is_its_own_class_and_a_warning() -> None:
    body = CLEAN.replace(f"AscendC::Exp(y, x, {N});", f"AscendC::Adds(y, x, 1.0f, {N});\nAscendC::Muls(y, y, 2.0f, {N});")
    found = simple(body)
    assert {f.kind for f in found.findings} == {"same-pipe"} and found.verdict == "clean"
    assert {f.rule for f in found.findings} >= {"same-pipe-read-after-write"}
    fixed = body.replace("\nAscendC::Muls", "\nAscendC::PipeBarrier<PIPE_V>();\nAscendC::Muls")
    assert simple(fixed).findings == ()


def test_uninitialised_read() -> None:
    """Elementwise work on unset bytes is harmless; storing its result is not, nor is reducing it."""
    finding = only(simple(f"AscendC::Exp(y, x, {N});\n{flag('V_MTE3')}\n{STORE}"), "uninitialised-read")
    assert finding.kind == "uninit" and finding.buffer == "y" and finding.second and finding.second.unit == "AIV0.MTE3"
    reduced = simple(f"AscendC::WholeReduceSum(y, x, {N}, 1, 1, 1, 8);")
    assert only(reduced, "uninitialised-read").buffer == "x"


def test_a_partly_loaded_tile_may_be_computed_on_as_a_whole() -> None:
    half = CLEAN.replace(LOAD, load("x", "A", N // 2, "float")).replace(STORE, store("C", "y", N // 2, "float"))
    assert simple(half).errors == ()


def test_uninitialised_workspace() -> None:
    text = kernel({"A": "float", "W": "float", "C": "float"}, {"x": ("float", N), "y": ("float", N)}, CLEAN.replace("A,", "W,"))
    finding = only(run(text, Buffer("W", "float32", (N,), role="workspace")), "uninitialised-read")
    assert finding.memory == "GM" and finding.buffer == "W"


def test_output_that_nobody_writes() -> None:
    found = simple(f"{LOAD}")
    assert [(f.rule, f.severity) for f in found.findings] == [("output-not-written", "warning")]


def test_reading_past_a_gm_buffer() -> None:
    finding = only(simple(CLEAN.replace("x, A,", "x, A[8],")), "read-out-of-bounds")
    assert finding.kind == "bounds" and "32 bytes past the end" in finding.message and finding.buffer == "A"


def test_writing_past_a_local_buffer_and_into_its_neighbour() -> None:
    body = "\n".join([f"AscendC::Duplicate(y, 1.0f, {N});", LOAD, BARRIER, f"AscendC::Muls(x, x, 1.0f, {N + 8});", BARRIER, STORE])
    rules = {f.rule: f for f in simple(body).errors}
    assert {"write-out-of-bounds", "read-out-of-bounds", "overlapping-buffers"} <= set(rules)
    assert "were last written as part of x" in rules["overlapping-buffers"].message


def test_buffers_that_share_bytes_while_both_live() -> None:
    steps = [LOAD, f"AscendC::Duplicate(y, 1.0f, {N});", f"AscendC::Muls(z, x, 2.0f, {N});", store("C", "z", N, "float")]
    body = f"\n{BARRIER}\n".join(steps)
    text = kernel({"A": "float", "C": "float"}, {"x": ("float", N), "y": ("float", N), "z": ("float", N)}, body)
    assert run(text).verdict == "clean"
    finding = only(run(text.replace(f"GetWithOffset<float>({N}, 256)", f"GetWithOffset<float>({N}, 192)")), "overlapping-buffers")
    assert finding.kind == "overlap" and finding.buffer == "x"


def test_buffer_past_the_end_of_the_memory() -> None:
    text = kernel({"A": "float", "C": "float"}, {"x": ("float", N), "y": ("float", N)}, CLEAN).replace("(64, 256)", "(64, 196224)")
    assert only(run(text), "buffer-past-memory").kind == "bounds"


def test_misaligned_vector_operand() -> None:
    shifted = CLEAN.replace("Exp(y, x,", "Exp(y, x[1],").replace(f"x[1], {N}", f"x[1], {N - 8}")
    finding = only(simple(shifted.replace(STORE, store("C", "y", N - 8, "float"))), "misaligned-address")
    assert finding.kind == "align" and "byte 4" in finding.message


def test_compare_needs_whole_repeats() -> None:
    body = f"{LOAD}\n{flag('MTE2_V')}\nAscendC::CompareScalar(y.ReinterpretCast<uint8_t>(), x, 0.0f, AscendC::CMPMODE::GT, {N - 8});"
    assert only(simple(body), "misaligned-length").kind == "align"


@pytest.mark.parametrize(
    ("edit", "rule"),
    [
        (lambda body: body.replace("AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(0);", BARRIER), "flag-left-set"),
        (lambda body: "AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(0);\n" + body, "flag-set-twice"),
        (lambda body: body.replace(flag("MTE2_V"), flag("MTE2_V", 8)), "flag-id"),
        (lambda body: body + "\nAscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(1);", "deadlock"),
        (lambda body: body.replace(flag("MTE2_V"), "\n".join(reversed(flag("MTE2_V").splitlines()))), "wait-before-set"),
    ],
)
def test_local_flags(edit: Callable[[str], str], rule: str) -> None:
    found = simple(edit(CLEAN))
    assert rule in {f.rule for f in found.errors}, "\n".join(map(str, found.findings))
    kind = "deadlock" if rule == "deadlock" else "flag"
    assert all(f.kind == kind for f in found.errors if f.rule == rule)


def test_waiting_on_the_scalar_unit_for_a_flag_never_set_is_a_deadlock_with_its_line() -> None:
    finding = next(f for f in simple(f"{LOAD}\nAscendC::WaitFlag<AscendC::HardEvent::MTE2_S>(3);").errors if f.kind == "deadlock")
    assert "MTE2_S(3)" in finding.message and finding.second and "MTE2_S" in finding.second.text


def handoff(cube: str, vector: str, *, vectors: int = 1) -> KernelRun:
    """Cube copies nothing here: both sides are bare flag traffic, which is all these tests need."""
    return run(kernel({"A": "float", "C": "float"}, {"x": ("float", N), "y": ("float", N)}, vector, cube, vectors=vectors))


def set_cross(flag_id: int, pipe: str = "FIX") -> str:
    return f"AscendC::CrossCoreSetFlag<2, PIPE_{pipe}>({flag_id});"


def wait_cross(flag_id: int) -> str:
    return f"AscendC::CrossCoreWaitFlag({flag_id});"


def test_cross_core_flags_clean() -> None:
    assert handoff(f"{set_cross(0)}\n{wait_cross(1)}", f"{wait_cross(0)}\n{CLEAN}\n{set_cross(1, 'MTE3')}", vectors=2).verdict == "clean"


def test_cross_core_deadlock_says_who_waits_and_where_it_would_be_set() -> None:
    found = handoff(f"if (cid > 5) {{\n  {set_cross(0)}\n}}", wait_cross(0))
    finding = next(f for f in found.errors if f.kind == "deadlock")
    assert found.verdict == "deadlock" and "AIV0 waits forever for cross-core flag 0" in finding.message
    assert "under `if (cid > 5)`" in finding.message and finding.second and "CrossCoreWaitFlag(0)" in finding.second.text


def test_cross_core_flag_left_set_half_set_and_bad_id() -> None:
    assert only(handoff(set_cross(0), CLEAN), "cross-flag-left-set").kind == "flag"
    half = handoff(wait_cross(1), f"if (AscendC::GetSubBlockIdx() == 0) {{\n{set_cross(1, 'MTE3')}\n}}", vectors=2)
    assert half.verdict == "deadlock"
    assert "cross-flag-id" in {f.rule for f in handoff(set_cross(11), f"{wait_cross(11)}\n{CLEAN}").errors}


def test_cross_core_counter_limit_and_the_binary_reading() -> None:
    cube = f"for (int32_t i = 0; i < 16; ++i) {{\n{set_cross(0)}\n}}"
    vector = f"for (int32_t i = 0; i < 16; ++i) {{\n{wait_cross(0)}\n}}\n{CLEAN}"
    found = handoff(cube, vector)
    assert only(found, "cross-flag-counter").kind == "flag"
    few = handoff(cube.replace("16", "4"), vector.replace("16", "4"))
    assert few.errors == () and {f.rule for f in few.findings} == {"cross-flag-not-binary-safe"}
    text = kernel({"A": "float", "C": "float"}, {"x": ("float", N), "y": ("float", N)}, vector.replace("16", "4"), cube.replace("16", "4"))
    assert only(run(text, counting=False), "cross-flag-not-binary-safe").severity == "error"


def test_two_vector_streams_writing_the_same_values_is_harmless_and_noted() -> None:
    text = kernel({"A": "float", "C": "float"}, {"x": ("float", N), "y": ("float", N)}, CLEAN, vectors=2)
    found = run(text)
    assert found.verdict == "clean" and {(f.rule, f.kind, f.severity) for f in found.findings} == {
        ("same-value-write", "duplicate", "info")
    }


def test_two_vector_streams_writing_different_values_race() -> None:
    text = kernel({"A": "float", "C": "float"}, {"x": ("float", N), "y": ("float", N)},
                  CLEAN.replace(f"Exp(y, x, {N})", f"Adds(y, x, (float)AscendC::GetSubBlockIdx(), {N})"), vectors=2)  # fmt: skip
    assert only(run(text), "cross-core-write-after-write").kind == "race"


def test_blocks_that_write_the_same_bytes_race() -> None:
    text = kernel({"A": "float", "C": "float"}, {"x": ("float", N), "y": ("float", N)}, CLEAN)
    finding = only(run(text, blocks=3), "blocks-write-write")
    assert finding.kind == "race" and finding.buffer == "C" and finding.other_block >= 0


def test_a_block_that_reads_what_another_writes_races() -> None:
    either = f"if (cid == 0) {{\n{store('W', 'y', N, 'float')}\n}}\nelse {{\n{load('x', 'W', N, 'float')}\n}}"
    body = CLEAN.replace(STORE, either)
    text = kernel({"A": "float", "W": "float", "C": "float"}, {"x": ("float", N), "y": ("float", N)}, body)
    rules = {f.rule for f in run(text, Buffer("W", "float32", (N,), role="workspace"), blocks=2).errors}
    assert "blocks-read-write" in rules


def test_sync_all_orders_the_blocks() -> None:
    body = f"""{LOAD}
{flag("MTE2_V")}
AscendC::Exp(y, x, {N});
{flag("V_MTE3")}
if (cid == 0) {{
{store("W", "y", N, "float")}
}}
AscendC::SyncAll<true>();
if (cid == 2) {{
{load("x", "W", N, "float")}
{BARRIER}
{store("C", "x", N, "float")}
}}"""
    text = kernel({"A": "float", "W": "float", "C": "float"}, {"x": ("float", N), "y": ("float", N)}, body)
    for threads in (1, 2):
        found = run(text, Buffer("W", "float32", (N,), role="workspace"), blocks=5, threads=threads)
        assert found.verdict == "clean", "\n".join(map(str, found.findings))
        np.testing.assert_allclose(found.outputs["C"], np.exp(A), rtol=1e-6)


ATOMIC = CLEAN.replace(STORE, f"AscendC::SetAtomicAdd<float>();\n{STORE}\nAscendC::SetAtomicNone();")


def test_atomic_adds_of_blocks_do_not_race_and_repeat_exactly() -> None:
    text = kernel(
        {"A": "float", "C": "float"},
        {"x": ("float", N), "y": ("float", N)},
        ATOMIC.replace("Exp(y, x", "Muls(y, x, 0.1f * (cid + 1)"),
        vectors=2,
    )
    zero = np.zeros(N, np.float32)
    results = []
    for threads in (1, 2, 4):
        found = run_kernel(
            text, "test", [Buffer("A", "float32", (N,), A), Buffer("C", "float32", (N,), zero, role="inout")], blocks=9, threads=threads
        )
        assert found.verdict == "clean", "\n".join(map(str, found.findings))
        results.append(found.outputs["C"])
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    np.testing.assert_allclose(results[0], A * 0.1 * 45 * 2, rtol=1e-5)


def test_atomic_add_against_a_plain_read_of_another_block_races() -> None:
    text = kernel(
        {"A": "float", "C": "float"}, {"x": ("float", N), "y": ("float", N)}, ATOMIC + f"\n{BARRIER}\n{load('x', 'C', N, 'float')}"
    )
    found = run_kernel(
        text, "test", [Buffer("A", "float32", (N,), A), Buffer("C", "float32", (N,), np.zeros(N, np.float32), role="inout")], blocks=2
    )
    assert "blocks-atomic-mixed" in {f.rule for f in found.errors}


def test_a_crash_and_an_endless_loop_become_findings() -> None:
    assert only(simple("volatile int* p = nullptr; *p = 1;"), "simulation-stopped").kind == "crash"
    endless = simple("volatile int n = 1; while (n) { }", timeout=1.0)
    assert "did not end within 1 s" in only(endless, "simulation-stopped").message and endless.verdict == "error"


def test_findings_round_trip() -> None:
    for finding in simple(CLEAN.replace(flag("MTE2_V"), "")).findings:
        assert Finding.from_json(finding.to_json()) == finding
        assert finding.rule in str(finding)
