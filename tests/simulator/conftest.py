"""Tests that lower with the real compiler are skipped where there is none; all are skipped without g++."""

from __future__ import annotations

import shutil

import pytest

from fusion.toolchain import find


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    no_compiler = None if find() else pytest.mark.skip(reason="tilelang-ascend is not installed: fusion-plan toolchain install")
    no_gcc = None if shutil.which("g++") else pytest.mark.skip(reason="no g++")
    for item in items:
        if "tests/simulator" not in item.nodeid:
            continue
        if no_gcc:
            item.add_marker(no_gcc)
        elif no_compiler and "lowered" in item.nodeid:
            item.add_marker(no_compiler)
