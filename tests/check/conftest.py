"""One check of all sample kernels, shared by the tests: the compiler and the simulator are the slow part."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from fusion.check.driver import Options, Source, check_sources, read_source
from fusion.check.report import FileReport, Report

KERNELS = Path(__file__).parent / "kernels"
EXAMPLES = Path(__file__).parents[2] / "examples/kernels"


def check_text(text: str, name: str = "kernel.py", options: Options | None = None) -> FileReport:
    """The report on a file that is not on the disk."""
    (report,) = check_sources([Source(KERNELS / name, text)], options or Options())
    return report


def only(report: FileReport) -> Report:
    (kernel,) = report.kernels
    return kernel


@pytest.fixture(scope="session")
def samples() -> Mapping[str, FileReport]:
    """The reports on the files of tests/check/kernels, by name."""
    paths = sorted(KERNELS.glob("*.py"))
    reports = check_sources([read_source(path) for path in paths], Options())
    return {report.path.stem: report for report in reports}
