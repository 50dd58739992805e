"""A stand-in for the device: "launches" a kernel by writing what the stage graph says its results are into its GM tensors."""

from __future__ import annotations

from collections.abc import Callable

import torch

from fusion.emit.gm import gm_tensor
from fusion.emit.program import KernelProgram
from fusion.graph import StageGraph
from fusion.plan.structure import Structure
from fusion.plan.tiling import Tiling
from fusion.plan.types import Plan

Launch = Callable[[KernelProgram, dict[str, torch.Tensor]], None]


def golden_launch(plan: Plan, env: dict[str, torch.Tensor]) -> Launch:
    """Checks every argument against its parameter, then fills the results from `env` (every value of the graph, over its dims)."""
    tiling = Tiling(plan.graph, plan.tiles)

    def launch(kernel: KernelProgram, tensors: dict[str, torch.Tensor]) -> None:
        assert list(tensors) == [p.name for p in kernel.params]
        placed = next(k for k in plan.kernels if k.name == kernel.name)
        made = Structure(tiling, placed.stages, placed.grid, placed.loops).made
        for p in kernel.params:
            tensor = tensors[p.name]
            assert tuple(tensor.shape) == p.shape, p
            assert str(tensor.dtype) == f"torch.{p.dtype}", p
            assert tensor.is_contiguous(), p
            if p.role == "atomic":
                assert not tensor.any(), f"{p.name} is not zeroed"
            if p.value in made:
                fill(plan.graph, tiling, p.value, tensor, env)
            elif p.value:
                check(plan.graph, tiling, p.value, tensor, env)

    return launch


def stored(graph: StageGraph, tiling: Tiling, value: str, env: dict[str, torch.Tensor]) -> torch.Tensor | None:
    """The value as a kernel sees it, lanes left out; None where it is stored tile by tile."""
    tensor = gm_tensor(tiling, graph.value(value))
    if tensor.packed:
        return None
    dims = [d for axis in tensor.axes for d in axis]
    shape = [graph.size(axis) for axis in tensor.axes if axis or not tensor.lanes]
    return env[value].permute([graph.value(value).dims.index(d) for d in dims]).reshape(shape)


def fill(graph: StageGraph, tiling: Tiling, value: str, tensor: torch.Tensor, env: dict[str, torch.Tensor]) -> None:
    """Writes a value; one without tiled dims as a sum over its lanes."""
    whole = stored(graph, tiling, value, env)
    if whole is None:
        fill_tiles(graph, tiling, value, tensor, env)
    elif whole.dim() < tensor.dim():
        tensor[..., 0] = whole / 2
        tensor[..., -1] = whole / 2
    else:
        tensor.copy_(whole)


def fill_tiles(graph: StageGraph, tiling: Tiling, value: str, tensor: torch.Tensor, env: dict[str, torch.Tensor]) -> None:
    """Writes a value tile by tile where all of its tiles are stored; nobody but kernels looks at the others."""
    gm = gm_tensor(tiling, graph.value(value))
    assert gm.packed
    dims = [*(d for axis in gm.axes for d in axis), gm.packed.row, gm.packed.col]
    whole = env[value].permute([graph.value(value).dims.index(d) for d in dims])
    rows, width, height, breadth = tensor.shape[-4:]
    if width != tiling.trips(gm.packed.col):
        tensor.zero_()
        return
    for i in range(rows):
        for j in range(width):
            part = whole[..., i * height : (i + 1) * height, j * breadth : (j + 1) * breadth]
            tensor[..., i, j, : part.shape[-2], : part.shape[-1]] = part


def check(graph: StageGraph, tiling: Tiling, value: str, tensor: torch.Tensor, env: dict[str, torch.Tensor]) -> None:
    """What the host passes is what the graph says, every lane of it."""
    whole = stored(graph, tiling, value, env)
    if whole is not None:
        want = whole[..., None].expand(tensor.shape) if whole.dim() < tensor.dim() else whole
        torch.testing.assert_close(tensor.double(), want.double(), rtol=1e-2, atol=1e-2)
