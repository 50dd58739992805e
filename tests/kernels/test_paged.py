"""Decode over pages against attention on each sequence's own keys."""

from __future__ import annotations

import pytest
import torch

from fusion.errors import FusionError
from fusion.graph.evaluate import evaluate
from kernels.paged import gqa_decode_paged
from tests.inputs import assert_close, random_inputs


def reference(x: dict[str, torch.Tensor], groups: int, page_size: int) -> torch.Tensor:
    """One sequence and one head at a time; pages outside of the pool are zero."""
    batch, heads, dim = x["Q"].shape
    out = torch.zeros(batch, heads, dim, dtype=torch.float64)
    for b in range(batch):
        length = int(x["length"][b])
        rows = [divmod(i, page_size) for i in range(length)]
        for h in range(heads):
            keys, values = (
                torch.stack([pool[int(x["table"][b, p]), at, h // groups] if x["table"][b, p] >= 0 else torch.zeros(dim) for p, at in rows])
                if rows
                else torch.zeros(0, dim)
                for pool in (x["K"], x["V"])
            )
            if length:
                out[b, h] = torch.softmax(keys.double() @ x["Q"][b, h] * dim**-0.5, 0) @ values.double()
    return out


def test_decode_over_pages() -> None:
    graph = gqa_decode_paged(batch=4, heads=6, groups=3, pages=3, pool=7, page_size=5, dim=4)
    x = random_inputs(graph)
    x["table"] = torch.tensor([[6, 0, 2], [1, 1, 5], [3, -1, 4], [0, 0, 0]], dtype=torch.int32)
    x["length"] = torch.tensor([15, 7, 12, 0], dtype=torch.int32)
    assert_close(evaluate(graph, x)["O"], reference(x, 3, 5))


def test_heads_are_whole_groups() -> None:
    with pytest.raises(FusionError, match="heads=6 is no multiple of groups=4"):
        gqa_decode_paged(heads=6, groups=4)
