"""The microbenchmarks: their files, and that together they tell the parameters apart."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

from fusion.calibrate import emitted
from fusion.calibrate.fit import PARAMETERS, Row, narrowing
from fusion.calibrate.microbench import benches
from fusion.device import load
from fusion.errors import FusionError
from fusion.toolchain import find


def test_the_folder_holds_kernels_and_a_script(tmp_path: Path) -> None:
    written = emitted.emit(tmp_path / "bench")
    assert {p.name for p in written} == {*(f"{b.name}.py" for b in benches()), "run.py", "benches.json"}
    for path in written:
        if path.suffix == ".py":
            ast.parse(path.read_text())
    with pytest.raises(FusionError, match="not an empty folder"):
        emitted.emit(tmp_path / "bench")


def test_every_parameter_has_a_kernel() -> None:
    about = " ".join(b.about for b in benches())
    assert all(key in about for key in PARAMETERS)


@pytest.mark.skipif(find() is None, reason="no TileLang-Ascend compiler")
def test_the_sensitivities_are_well_conditioned() -> None:
    rows = [Row(name, 1.0, (found,)) for name, found in emitted.outlines().items()]
    left = narrowing(load("910B3"), rows, tuple(PARAMETERS))
    assert max(left.values()) < 0.5, left
    assert np.isfinite(list(left.values())).all()
