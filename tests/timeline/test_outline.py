"""Kinds of blocks against a full run, and extrapolation against looking at every block."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from fusion.calibrate.handwritten import VARIANTS, Module, Shape
from fusion.device import load
from fusion.simulator import Buffer, run_kernel
from fusion.simulator.trace import read
from fusion.timeline.launch import makespan, time_launch, totals
from fusion.timeline.record import outline, spread
from fusion.timeline.report import kernel_time
from fusion.toolchain import KernelSource, Lowered, find, lower

SHAPE = Shape(heads=4, groups=2, seq_len=512)
pytestmark = pytest.mark.skipif(find() is None, reason="no TileLang-Ascend compiler")


@pytest.fixture(scope="module")
def lowered() -> Lowered:
    (found,) = lower([KernelSource("dk_dq", Module(VARIANTS[6][2], SHAPE).text())])
    assert not found.error
    return found


def buffers(lowered: Lowered, *, filled: bool) -> list[Buffer]:
    made = list[Buffer]()
    for p in lowered.params:
        shape = tuple(int(n) for n in p.shape)
        data = np.zeros(shape, np.float16 if p.dtype == "float16" else np.float32) if filled else None
        made.append(Buffer(p.name, p.dtype, shape, data, "inout" if filled else "out"))
    return made


def test_an_outline_has_the_instructions_of_a_run(lowered: Lowered, tmp_path: Path) -> None:
    assert lowered.ascendc
    run_kernel(lowered.ascendc, "dk_dq", buffers(lowered, filled=True), trace=tmp_path / "trace", order=False)
    full: dict[int, int] = {}
    for section in read(tmp_path / "trace"):
        full[section.block] = full.get(section.block, 0) + len(section.records)
    found = outline(lowered.ascendc, "dk_dq", buffers(lowered, filled=False))
    assert [len(found.kinds[k].records) for k in found.kind_of] == [full[b] for b in range(found.blocks)]
    assert sum(k.count for k in found.kinds) == found.blocks == len(full)
    assert len(found.kinds) == 3  # the window reaches back over 0, 1 or 2 tiles


def test_extrapolation_is_close_to_looking_at_every_block(lowered: Lowered) -> None:
    assert lowered.ascendc
    whole = outline(lowered.ascendc, "dk_dq", buffers(lowered, filled=False))
    part = outline(lowered.ascendc, "dk_dq", buffers(lowered, filled=False), choose=(*range(0, whole.blocks, 3), whole.blocks - 1))
    assert part.sampled and not whole.sampled
    full, guess = time_launch(whole, load()).us, time_launch(part, load()).us
    assert guess == pytest.approx(full, rel=0.05)


def test_a_cut_block_goes_on_at_its_pace() -> None:
    """The last blocks have 16 iterations, of which the first five are kept."""
    (lowered,) = lower([KernelSource("dk_dq", Module(VARIANTS[6][2], Shape(heads=2, groups=2, seq_len=1024, window=1024)).text())])
    assert lowered.ascendc
    whole = outline(lowered.ascendc, "dk_dq", buffers(lowered, filled=False))
    cut = outline(lowered.ascendc, "dk_dq", buffers(lowered, filled=False), kept=600)
    assert (cut.instructions, cut.kind_of) == (whole.instructions, whole.kind_of)
    assert max(len(k.records) for k in cut.kinds) <= 602 < 0.4 * max(len(k.records) for k in whole.kinds)
    assert totals(cut) == totals(whole)
    full, guess = time_launch(whole, load()), time_launch(cut, load())
    assert guess.us == pytest.approx(full.us, rel=0.05)
    assert whole.extrapolated == "" and "% of each block's instructions" in cut.extrapolated
    times = [kernel_time("dk_dq", launched, load()) for launched in (full, guess)]
    assert times[1].tflops == pytest.approx(times[0].tflops, rel=0.1)
    assert times[1].busy["AIC.MTE2"] == pytest.approx(times[0].busy["AIC.MTE2"], abs=0.05)


@pytest.mark.parametrize(
    ("blocks", "instructions", "looked_at"), [(4096, 9_000, 4096), (8192, 100, 4096), (20, 10_000_000, 4), (20, 90_000_000, 2)]
)
def test_large_launches_are_looked_at_in_part(blocks: int, instructions: int, looked_at: int) -> None:
    chosen = spread(blocks, instructions)
    assert len(chosen or range(blocks)) == looked_at
    assert not chosen or (chosen[0], chosen[-1]) == (0, blocks - 1)
    if blocks == 8192:  # every place in rows of 64 tiles is looked at about equally often
        assert all(50 < n < 80 for n in Counter(b % 64 for b in chosen).values())


def test_blocks_go_to_the_core_that_is_free_first() -> None:
    assert makespan(np.array([3.0, 1.0, 1.0, 1.0]), 2) == 3.0
    assert makespan(np.array([2.0]), 20) == 2.0
