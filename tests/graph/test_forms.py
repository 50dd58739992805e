"""The text and JSON forms read back as the same graph, and say where a text does not fit."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings

import kernels
from fusion.errors import FusionError
from fusion.graph import Affine, StageGraph, from_text, to_text
from fusion.graph.jsonform import from_json, to_json
from tests.graph.small import product, softmax_sum
from tests.strategies import stage_graphs

PRODUCT = """\
graph product
dim m = 3
dim n = 4
dim k = 5
input A : float16[m k]
input B : float16[k n]
cube mul:
  acc : float32[m n] = contract(A, B) over k
vector round:
  C : float16[m n] = cast(acc) as float16
output C : float16[m n]
"""


def test_text_is_what_the_page_says() -> None:
    assert to_text(product()) == str(product()) == PRODUCT


@given(stage_graphs(scans=True))
@settings(max_examples=60, deadline=None)
def test_random_graphs_round_trip(graph: StageGraph) -> None:
    assert from_text(to_text(graph)) == graph
    assert from_json(to_json(graph)) == graph


@pytest.mark.parametrize("name", kernels.names())
def test_operators_round_trip(name: str) -> None:
    graph = kernels.load(name)()
    assert from_text(to_text(graph)) == graph
    assert to_text(from_text(to_text(graph))) == to_text(graph)


def test_scans_tiles_masks_and_layouts_are_in_the_text() -> None:
    text = to_text(kernels.load("gqa_sink_bwd")(window=128))
    assert "dim q = 4096 tiles 64 128" in text
    assert "input Q : float16[b (n g) q d]" in text
    assert "input dO : float16[b (n g) q d] after O" in text
    assert "state m : float32[b n g q] along k from -1e+30 then m_new" in text
    assert "if - k + q >= 0, k - q + 127 >= 0" in text
    assert "vector fwd_softmax scan k:" in text


def test_order_of_the_values_does_not_matter() -> None:
    graph = softmax_sum()
    shuffled = StageGraph(graph.name, graph.dims, graph.values[::-1], graph.stages, graph.carries)
    assert [v.name for v in shuffled.values] == [v.name for v in graph.values]


def test_comments_and_blank_lines_are_skipped() -> None:
    assert from_text("# a product\n\n" + PRODUCT.replace("cube mul:", "cube mul:  # the Cube")) == product()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("dim k = 5", "dim k := 5", "mine.txt:4: cannot read 'dim k := 5'"),
        ("contract(A, B) over k", "kontract(A, B) over k", "did you mean contract"),
        ("contract(A, B)", "contract(A, D)", "stage mul reads D before it is assigned"),
        ("contract(A, B) over k", "contract(A, B) over z", "unknown dim 'z'"),
        ("C : float16[m n] = cast(acc) as float16", "C : float16[m n] = cast(acc) as half", "unknown dtype 'half'"),
        ("dim m = 3", "dim m = 0", "mine.txt:2: dim m has size 0"),
        ("output C : float16[m n]\n", "", "no value is marked as an output"),
    ],
)
def test_a_wrong_line_is_named(old: str, new: str, message: str) -> None:
    with pytest.raises(FusionError) as error:
        from_text(PRODUCT.replace(old, new), "mine.txt")
    assert message in str(error.value)


def test_affine_conditions_read_back() -> None:
    text = PRODUCT.replace("cast(acc) as float16\n", "cast(acc) as float16\n  D : float16[m n] = where(C, 0.0) if {}\n")
    for condition in (Affine((("m", 2), ("n", -1)), -3), Affine((("n", 12),), 0), Affine((), -1), Affine((("m", -1),), 64)):
        graph = from_text(text.format(condition))
        assert graph.stage("round").body[1].where == (condition,)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"text": 3}', '{"text": "graph x\\nnonsense"}', "null"])
def test_json_that_is_no_graph_is_refused(text: str) -> None:
    with pytest.raises(FusionError):
        from_json(text, "mine.json")


def test_json_lists_the_same_content_for_machines() -> None:
    content = json.loads(to_json(softmax_sum()))
    assert [d["name"] for d in content["dims"]] == ["q", "k"]
    assert content["carries"][0]["next"] == "m_new"
    assert content["stages"][0]["unit"] == "vector"
