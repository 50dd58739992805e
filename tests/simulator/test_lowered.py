"""Code of the real compiler with its own template headers: numbers, verdicts, random schedules and removed synchronizations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fusion.precision import compare
from fusion.simulator import KernelRun, verdict
from fusion.simulator.sync import Sync, synchronizations
from fusion.simulator.trace import KINDS, op_names, read
from tests.simulator.lowered import CASES, ascendc, buffers, run, values


def golden(name: str, v: dict[str, np.ndarray]) -> np.ndarray | None:
    """The output in float64, or None where the kernel cannot have one."""
    if name == "cyclic_loop":
        return np.exp(v["Q"] @ v["K"].T).astype(np.float16).astype(np.float64) @ v["K"]  # the kernel hands exp over as fp16
    if name == "flash_attention":
        score = v["Q"] @ v["K"].transpose(0, 2, 1) / 8
        weight = np.exp(score - score.max(-1, keepdims=True))
        return weight / weight.sum(-1, keepdims=True) @ v["V"]
    if name == "guarded_producer":
        return None
    product = v["A"].T @ v["B"] if name == "gemm_atomic" else v["A"] @ (v["B"].T if name == "gemm_float32" else v["B"])
    after = {"matmul_add": lambda p: p + v["D"], "one_way_loop": lambda p: 2 * p, "broadcast_reload": lambda p: p - v["R"][:, None]}
    return after.get(name, lambda p: p)(product)


def judge(name: str, **options: object) -> tuple[KernelRun, bool | None]:
    """The run, and whether its numbers meet the precision standard."""
    specs = CASES[name]
    made = buffers(specs, scale=0.2 if name == "cyclic_loop" else 1.0)
    done = run(name, made, **options)
    expected = golden(name, values(made))
    (output,) = [b for b, spec in specs.items() if spec[2] in ("out", "inout")]
    return done, None if expected is None else compare(done.outputs[output], expected, specs[output][0]).passed


CLEAN = ["matmul_add", "cyclic_loop", "flash_attention", "gemm_bf16", "gemm_int8", "gemm_float32", "gemm_atomic"]


@pytest.mark.parametrize("name", CLEAN)
def test_clean_kernels_have_right_numbers_and_no_error(name: str) -> None:
    done, right = judge(name)
    assert right and verdict(done.findings, right) == "clean", "\n".join(map(str, done.findings))


@pytest.mark.parametrize(
    ("name", "expected", "rule"),
    [
        ("one_way_loop", "race", "cross-core-read-after-write"),
        ("guarded_producer", "deadlock", "deadlock"),
        ("scratch_not_workspace", "race", "cross-core-write-after-read"),
        ("k_tail_200", "wrong", "overlapping-buffers"),
        ("broadcast_reload", "wrong", None),
    ],
)
def test_broken_kernels_get_their_verdict(name: str, expected: str, rule: str | None) -> None:
    done, right = judge(name)
    assert verdict(done.findings, right) == expected, "\n".join(map(str, done.findings))
    assert rule is None or rule in {f.rule for f in done.errors}


def test_deadlock_names_the_condition_around_the_missing_set() -> None:
    done, _ = judge("guarded_producer")
    finding = next(f for f in done.errors if f.kind == "deadlock")
    assert finding.block == 3 and "cross-core flag 0" in finding.message and "under `if" in finding.message


def test_overlap_names_both_buffers() -> None:
    done, _ = judge("k_tail_200")
    finding = next(f for f in done.errors if f.rule == "overlapping-buffers")
    assert finding.memory == "L1" and finding.buffer == "a" and "part of b" in finding.message


@pytest.mark.parametrize("name", ["cyclic_loop", "flash_attention", "matmul_add"])
def test_random_legal_schedules_of_clean_kernels_give_the_right_numbers(name: str) -> None:
    for seed in range(6):
        done, right = judge(name, schedule_seed=seed)
        assert right and not done.errors, f"seed {seed}"


def test_random_legal_schedules_show_the_race() -> None:
    assert not all(judge("one_way_loop", schedule_seed=seed)[1] for seed in range(4))


def wrong_under_some_schedule(name: str, removed: Sync) -> bool:
    return any(done.errors or not right for done, right in (judge(name, schedule_seed=seed, mutate=removed.lines) for seed in range(6)))


@pytest.mark.parametrize("name", ["cyclic_loop", "matmul_add"])
def test_every_removed_synchronization_is_found_or_redundant(name: str) -> None:
    """The order verdict and random schedules agree on each removed pair, in both directions; every cross-core pair is found."""
    for removed in synchronizations(ascendc(name)):
        done, _ = judge(name, mutate=removed.lines)
        found = verdict(done.findings) != "clean"
        assert found or removed.kind != "cross", str(removed)
        assert found == wrong_under_some_schedule(name, removed), str(removed)


def test_one_side_of_a_cross_core_pair_deadlocks_or_is_left_over() -> None:
    pair = next(s for s in synchronizations(ascendc("matmul_add")) if s.kind == "cross")
    assert judge("matmul_add", mutate=pair.lines[:1])[0].verdict == "deadlock"
    assert "cross-flag-left-set" in {f.rule for f in judge("matmul_add", mutate=pair.lines[1:])[0].errors}


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    one, two = (judge("flash_attention", threads=n)[0] for n in (1, 2))
    np.testing.assert_array_equal(one.outputs["O"], two.outputs["O"])
    assert one.findings == two.findings


def test_trace_holds_every_instruction(tmp_path: Path) -> None:
    done, _ = judge("matmul_add", trace=tmp_path / "trace")
    streams = list(read(tmp_path / "trace"))
    assert [(s.block, s.stream) for s in streams] == [(b, s) for b in range(2) for s in range(3)]
    cube = next(s for s in streams if s.stream == 0).records
    ops = [op_names()[r["op"]] for r in cube if KINDS[r["kind"]] == "run"]
    assert ops.count("Mmad") == 1 and ops.count("Fixpipe") == 1 and ops.count("DataCopy") == 2
    mmad = next(r for r in cube if KINDS[r["kind"]] == "run" and op_names()[r["op"]] == "Mmad")
    assert (mmad["m"], mmad["n"], mmad["k"]) == (64, 64, 64)
    assert KINDS[cube[-1]["kind"]] == "end" and sum(KINDS[r["kind"]] == "cross set" for r in cube) == 1
    assert sum(int(np.count_nonzero(s.records["kind"] == 0)) for s in streams) == sum(done.pipes.values())
