"""Programs that several tests of emission start from."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from fusion.emit.emit import emit
from fusion.emit.program import Program
from tests.plan.variants import load


@cache
def _variant(count: int) -> Program:
    return emit(load(count))


@pytest.fixture
def variant() -> Callable[[int], Program]:
    """gqa_sink_bwd at a small shape, by the shipped plan with so many kernels."""
    return _variant
