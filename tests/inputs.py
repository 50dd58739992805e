"""Random inputs for a stage graph, in float64 and the caller's layout."""

from __future__ import annotations

import torch

from fusion.graph import StageGraph
from fusion.graph.evaluate import external_shape


def random_inputs(graph: StageGraph, seed: int = 0) -> dict[str, torch.Tensor]:
    """Normal numbers for floating inputs; index inputs are left to the test."""
    generator = torch.Generator().manual_seed(seed)
    floating = [v for v in graph.inputs if v.dtype.startswith(("float", "bfloat"))]
    return {v.name: torch.randn(external_shape(graph, v), generator=generator, dtype=torch.float64) for v in floating}


def assert_close(have: torch.Tensor, want: torch.Tensor, tolerance: float = 1e-9) -> None:
    """Same shape, and the largest error within the tolerance of the largest magnitude."""
    assert have.shape == want.shape, f"shape {tuple(have.shape)}, expected {tuple(want.shape)}"
    scale = max(1.0, want.abs().max().item())
    error = (have - want).abs().max().item()
    assert error <= tolerance * scale, f"largest error {error:.3g} at magnitude {scale:.3g}"
