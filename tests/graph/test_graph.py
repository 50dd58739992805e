"""The networkx graph of an operator and its drawings."""

from __future__ import annotations

import pytest

import kernels
from fusion.errors import FusionError
from fusion.graph.draw import to_dot, to_mermaid
from tests.graph.small import product, softmax_sum


def test_edges_carry_the_values() -> None:
    graph = kernels.load("gqa_sink_bwd")().graph
    assert graph.edges["softmax", "dv"]["values"] == ("p_cast",)
    assert graph.edges["fwd_finish", "softmax"]["values"] == ("lse",)
    assert graph.nodes["qk"]["unit"] == "cube"


def test_host_steps_are_edges_of_their_own() -> None:
    graph = kernels.load("gqa_sink_bwd")()
    assert ("fwd_finish", "dp", "O") in graph.host_edges()
    assert {v for _, v, _ in graph.host_edges()} == {"preprocess", "dv", "dp"}


def test_scans_are_groups() -> None:
    graph = kernels.load("gqa_sink_bwd")()
    assert graph.scan_groups() == (("fwd_qk", "fwd_softmax", "fwd_pv", "fwd_rescale"),)
    assert {"+".join(run) for run in softmax_sum().runs} == {"step", "finish"}


def test_readers_producers_and_spaces() -> None:
    graph = product()
    assert graph.producer("acc") == "mul" and graph.producer("A") is None
    assert graph.readers("acc") == ("round",)
    assert graph.stage_dims("mul") == {"m", "n", "k"}
    assert graph.size(graph.value("acc").dims) == 12


@pytest.mark.parametrize(("kind", "name"), [("dim", "mm"), ("value", "ac"), ("stage", "rund")])
def test_unknown_names_get_a_hint(kind: str, name: str) -> None:
    with pytest.raises(FusionError, match="did you mean"):
        getattr(product(), kind)(name)


def test_graphviz() -> None:
    assert to_dot(product()) == (
        'digraph "product" {\n  rankdir=TB;\n  "mul" [shape=box];\n  "round" [shape=ellipse];\n  "mul" -> "round" [label="acc"];\n}\n'
    )
    assert 'label="k1";' in to_dot(product(), [("k1", ["mul"])])


def test_mermaid() -> None:
    assert to_mermaid(product()) == "flowchart TB\n    mul[mul]\n    round(round)\n  mul -->|acc| round\n"
    boxed = to_mermaid(product(), [("k1", ["mul", "round"])])
    assert boxed.startswith('flowchart TB\n  subgraph k0["k1"]\n    mul[mul]\n    round(round)\n  end\n')
