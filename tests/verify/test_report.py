"""The table of a verification: which column is marked, and what is said about it."""

from __future__ import annotations

import numpy as np
import pytest

from fusion.precision import compare
from fusion.verify.cases import Case
from fusion.verify.report import as_object, print_results
from fusion.verify.run import PlanVerdict
from fusion.verify.session import CaseResult


def ones(*changes: tuple[slice, float]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    values = np.ones(1000)
    for where, change in changes:
        values[where] += change
    return values


@pytest.mark.parametrize(
    ("actual", "marked", "said"),
    [
        (ones((slice(0, 1), 0.02)), "│ 0.9990 │ 2.00e-02 FAILS ", "y misses the precision standard: largest error 0.02 is above 0.01"),
        (ones((slice(0, 20), 0.005)), "│ 0.9800 FAILS │ 5.00e-03 ", "y misses the precision standard: ratio 0.9800 is below 0.99"),
        (ones((slice(0, 1), np.inf)), "│ 0.9990 │ 0.00e+00, inf/NaN elsewhere FAILS ", "standard: inf/NaN at other places"),
    ],
)
def test_the_column_that_fails_is_marked(actual: np.ndarray, marked: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:  # type: ignore[type-arg]
    verdict = PlanVerdict("wrong", {"y": compare(actual, ones(), "float32")}, (), 0.0)
    print_results("op", 1, [CaseResult(Case("small", "L0", ()), verdict)], full=False)
    text = capsys.readouterr().out
    assert "op in 1 kernel, run on the CPU" in text
    assert marked in text
    assert said in text


def test_the_outputs_are_those_of_the_cases_that_block() -> None:
    good = PlanVerdict("clean", {"y": compare(ones(), ones(), "float32")}, (), 0.0)
    bad = PlanVerdict("wrong", {"y": compare(ones((slice(0, 500), 9.0)), ones(), "float32")}, (), 0.0)
    found = as_object("op", 1, [CaseResult(Case("small", "L0", ()), good), CaseResult(Case("extreme", "boundary", ()), bad)])
    outputs = found["outputs"]
    assert isinstance(outputs, dict)
    assert (found["verdict"], outputs["y"]["passed"]) == ("clean", True)
