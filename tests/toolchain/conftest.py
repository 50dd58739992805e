"""A home folder of its own for every test; the real compiler is installed once and shared by link."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fusion import toolchain
from fusion.toolchain import layout


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home folder without a compiler."""
    monkeypatch.setenv("FUSION_PLAN_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("FUSION_PLAN_DEBIAN_MIRROR", raising=False)
    return tmp_path / "home"


@pytest.fixture(scope="session")
def installed() -> Path:
    """The folder of the real compiler, installed in the user's own home if need be."""
    toolchain.ensure()
    return layout.root()


@pytest.fixture(scope="module")
def real(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home folder with the real compiler, an empty cache, and a worker that ends with the module's tests."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "toolchain").symlink_to(installed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FUSION_PLAN_HOME", str(folder))
        patch.setenv("FUSION_PLAN_WORKER_IDLE", "60")
        yield folder
        toolchain.stop()
