"""The code and the texts on the pages about the language are what the language does."""

from __future__ import annotations

import re
from pathlib import Path

import torch

import kernels
from fusion.graph import Operator, from_text, to_text
from fusion.graph.evaluate import evaluate
from fusion.graph.ops import OPS

DOCS = Path(__file__).parents[2] / "docs"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)


def run(page: str) -> dict[str, object]:
    names: dict[str, object] = {}
    for block in blocks(page, "python"):
        exec(compile(block, page, "exec"), names)
    return names


def test_the_example_is_causal_attention() -> None:
    operator = run("graph.md")["attention"]
    assert isinstance(operator, Operator)
    Q, K, V = torch.randn(3, 2, 9, 4, dtype=torch.float64)
    want = torch.nn.functional.scaled_dot_product_attention(Q, K, V, is_causal=True)
    have = evaluate(operator(heads=2, seq_len=9, dim=4), {"Q": Q, "K": K, "V": V}, scan_step=4)["O"]
    torch.testing.assert_close(have, want, rtol=0, atol=1e-9)


def test_the_text_is_that_of_the_operator() -> None:
    (text,) = blocks("graph.md", "text")
    graph = kernels.load("gemm_bias_relu")(M=64, N=32, K=16)
    assert text == to_text(graph)
    assert from_text(text) == graph


def test_the_table_names_every_operation() -> None:
    page = (DOCS / "graph.md").read_text()
    spelled = {"max": "maximum", "min": "minimum", "abs": "absolute", "sub": "`-`", "mul": "`*`", "div": "`/`"}
    assert [fn for fn in OPS if spelled.get(fn, fn) not in page] == []


def test_the_walk_through_works() -> None:
    assert isinstance(run("add_an_operator.md")["scale_rows"], Operator)
