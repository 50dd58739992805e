"""Arguments of factories: wrong ones are named with their default, large ones are made smaller, each goes to the factories that have it."""

from __future__ import annotations

import textwrap

import pytest

from fusion.check.driver import Options, Source, check_sources
from fusion.check.reference_runner import solved
from fusion.check.report import Report
from fusion.errors import FusionError
from tests.check.conftest import KERNELS, check_text, only

HEAD = textwrap.dedent("""
    import tilelang
    import tilelang.language as T

    options = {"tl.ascend_auto_sync": True, "tl.ascend_memory_planning": True}
""")
SCALE = textwrap.dedent("""

    @tilelang.jit(out_idx=[-1], pass_configs=options)
    def scale(rows=64, columns=128, block=16, dtype="float"):
        @T.prim_func
        def main(A: T.Tensor((rows, columns), dtype), C: T.Tensor((rows, columns), dtype)):
            with T.Kernel(rows // block, threads=1, is_npu=True) as cid:
                a_ub = T.alloc_shared((block, columns), dtype)
                T.copy(A[cid * block, 0], a_ub)
                T.tile.mul(a_ub, a_ub, 2.0)
                T.copy(a_ub, C[cid * block, 0])

        return main
""")
OTHER = SCALE.replace("def scale(rows=64,", "def halve(height, rows=64,").replace("2.0", "0.5")


def checked(text: str, run: bool = True, kernel: str = "", **args: object) -> Report:
    return only(check_text(HEAD + text, options=Options(kernel, args=args, run=run, time=False)))


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"rows": "many"}, "rows='many' is a text, its default 64 is a whole number; with it: "),
        ({"block": 1.5}, "block=1.5 is a number, its default 16 is a whole number; with it: "),
        ({"dtype": 4}, "dtype=4 is a whole number, its default 'float' is a text; with it: "),
    ],
)
def test_an_argument_of_another_type_is_named_with_its_default(args: dict[str, object], said: str) -> None:
    report = only(check_text(HEAD + SCALE, options=Options(args=args, time=False)))
    (finding,) = report.findings
    assert (report.verdict, report.judged, finding.rule) == ("error", False, "wrong-argument")
    assert finding.message.startswith(said)
    assert "packed_func" not in finding.message and "script.ir_builder" not in finding.message
    assert finding.remedy == "give --args a value of the type that the default has" and finding.line


def test_a_value_that_does_not_work_is_named() -> None:
    report = checked(SCALE, dtype="number")
    (finding,) = report.findings
    assert (report.verdict, finding.message, finding.why) == ("refused", "unknown type number", "built with --args dtype=number")
    assert "float16" in finding.remedy


def test_unknown_names_are_refused_with_the_near_ones() -> None:
    with pytest.raises(FusionError, match=r"--args blok: no factory has a parameter 'blok'\n  did you mean block\?"):
        checked(SCALE, blok=4)
    with pytest.raises(FusionError, match=r"--kernel scal: no kernel of this name\n  did you mean scale\?"):
        checked(SCALE, kernel="scal")
    with pytest.raises(FusionError, match="--shape m: no open size 'm'\n  no kernel has an open size; factories take --args"):
        check_text(HEAD + SCALE, options=Options(shape={"m": 3}))


def test_an_argument_goes_to_the_factories_that_have_it() -> None:
    reports = check_text(HEAD + SCALE + OTHER, options=Options(args={"height": 1, "rows": 32}, time=False)).kernels
    assert sorted((r.kernel, r.verdict, r.args.split(",")[0]) for r in reports) == [
        ("halve", "clean", "height=1"),
        ("scale", "clean", "rows=32"),
    ]


def test_a_kernel_of_one_file_is_not_missed_in_the_others() -> None:
    sources = [Source(KERNELS / "a.py", HEAD + SCALE), Source(KERNELS / "b.py", HEAD + OTHER)]
    first, second = check_sources(sources, Options("scale", run=False))
    assert [r.kernel for r in first.kernels] == ["scale"] and second.kernels == ()


def test_kernels_that_are_left_out_are_counted() -> None:
    calls = "".join(f"\nscale({16 * n})" for n in range(1, 10))
    reports = check_text(HEAD + SCALE + calls, options=Options(run=False)).kernels
    assert len(reports) == 6
    assert "3 more kernels of scale with other arguments not checked; --args picks one" in reports[0].notes


def test_large_sizes_are_made_smaller_and_tiles_stay() -> None:
    report = checked(SCALE.replace("rows=64, columns=128", "rows=1 << 20, columns=128"))
    assert report.verdict == "clean"
    assert report.args == "rows=65536, columns=128, block=16, dtype=float"
    assert "checked, and timed, with rows=65536: its own sizes take long; --args rows=1048576 takes them" in report.notes


def test_sizes_that_are_asked_for_are_taken() -> None:
    report = checked(SCALE, run=False, rows=1 << 20)
    assert report.args.startswith("rows=1048576")
    assert not any("its own sizes" in note for note in report.notes)


@pytest.mark.parametrize(
    ("text", "size", "known", "found"),
    [
        ("batch + 1", 4, {}, {"batch": 3}),
        ("2*m + n", 10, {"n": 4}, {"m": 3}),
        ("2*m", 5, {}, {}),
        ("m*n", 6, {}, {}),
        ("n", 6, {"n": 6}, {}),
    ],
)
def test_a_size_of_a_sum_is_solved(text: str, size: int, known: dict[str, int], found: dict[str, int]) -> None:
    assert solved(text, size, known) == found


# ---- what the compiler makes of it


def statement(*lines: str) -> str:
    return SCALE.replace("T.tile.mul(a_ub, a_ub, 2.0)", ("\n" + " " * 12).join(lines))


def test_code_that_does_not_compile_is_refused_with_its_line() -> None:
    text = statement(
        "for i, j in T.Parallel(block, columns):", "    a_ub[i, j] = T.if_then_else(a_ub[i, j] > 0, a_ub[i, j], a_ub[i, j] * 2.0)"
    )
    report = checked(text)
    (finding,) = report.findings
    assert (report.verdict, finding.rule, report.judged) == ("refused", "generated-code", True)
    assert "if_then_else" in (HEAD + text).splitlines()[finding.line - 1]
    assert "T.tile operations" in finding.remedy


def test_a_statement_that_the_compiler_drops_is_refused() -> None:
    report = checked(statement("b_ub = T.alloc_shared((16, 8), dtype)", "T.tile.brcb(b_ub, a_ub, 2, 1, 8)"))
    assert (report.verdict, report.findings[0].rule) == ("refused", "no-code")
    assert "brcb_experiment" in report.findings[0].remedy


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        (SCALE.replace("as cid:", "as (cid, vid):"), "cannot unpack non-iterable Var", "`as cid`"),
        (statement("T.copy(a_ub, T.alloc_fragment((block, 64), dtype))"), "two shapes must be the same, they are", "the same shape"),
    ],
)
def test_messages_of_the_compiler_have_a_remedy(text: str, message: str, remedy: str) -> None:
    report = checked(text, run=False)
    (finding,) = report.findings
    assert (report.verdict, finding.rule) == ("refused", "frontend")
    assert message in finding.message and remedy in finding.remedy and finding.line


def test_a_run_that_does_not_end_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusion.check.dynamic.RUN_SECONDS", 0.001)
    report = checked(SCALE, rows=4096)
    (finding,) = report.findings
    assert (report.verdict, report.judged, finding.rule) == ("error", False, "not-run")
    assert finding.message == "the simulated run did not end within 0.001 s"
    assert "smaller sizes with --args" in finding.remedy


def test_a_hand_written_flag_has_its_line() -> None:
    text = textwrap.dedent("""

        @tilelang.jit(out_idx=[-1])
        def waits(rows=32, columns=32):
            @T.prim_func
            def main(A: T.Tensor((rows, columns), "float16"), W: T.Tensor((rows, columns), "float"), C: T.Tensor((rows, columns), "float")):
                with T.Kernel(1, is_npu=True) as (cid, vid):
                    a_l1 = T.alloc_L1((rows, columns), "float16")
                    c_l0c = T.alloc_L0C((rows, columns), "float")
                    c_ub = T.alloc_ub((rows // 2, columns), "float")
                    with T.Scope("C"):
                        T.copy(A, a_l1)
                        T.barrier_all()
                        T.gemm_v0(a_l1, a_l1, c_l0c, init=True)
                        T.barrier_all()
                        T.copy(c_l0c, W)
                        T.set_cross_flag("FIX", 1)
                    with T.Scope("V"):
                        T.wait_cross_flag(0)
                        T.copy(W[vid * (rows // 2), 0], c_ub)
                        T.barrier_all()
                        T.copy(c_ub, C[vid * (rows // 2), 0])

            return main
    """)
    report = checked(text)
    deadlock = next(finding for finding in report.findings if finding.rule == "deadlock")
    assert report.verdict == "deadlock"
    assert (HEAD + text).splitlines()[deadlock.line - 1].strip() == "T.wait_cross_flag(0)"
