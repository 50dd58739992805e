"""The plan file in docs/plans.md loads."""

from __future__ import annotations

import re
from pathlib import Path

from fusion.plan.text import from_text
from tests.plan.variants import small

PAGE = Path(__file__).parents[2] / "docs" / "plans.md"


def test_the_plan_in_the_page_loads() -> None:
    files = re.findall(r"```\n(plan .*?)```", PAGE.read_text(), re.DOTALL)
    assert files
    for text in files:
        assert len(from_text(text, small()).kernels) == 2
