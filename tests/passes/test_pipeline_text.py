"""Pipelines as text: names, options, their types, and what is said about mistakes."""

from __future__ import annotations

import pytest

import passes
from fusion.errors import FusionError
from fusion.passes import format_pipeline, listed, parse_pipeline
from passes.compensate_gemm import CompensateGemm
from passes.retain_in_ub import RetainInUb
from passes.split_oversize import SplitOversize


def test_names_and_options() -> None:
    found = parse_pipeline("retain-in-ub, compensate-gemm{stages=dk+dq, retile=true},split-oversize{most=3}")
    assert found == (RetainInUb(), CompensateGemm(stages="dk+dq", retile=True), SplitOversize(most=3))


def test_nothing_is_an_empty_pipeline() -> None:
    assert parse_pipeline("") == ()


@pytest.mark.parametrize("name", passes.PIPELINES)
def test_a_named_pipeline_stands_for_its_passes(name: str) -> None:
    assert parse_pipeline(name) == parse_pipeline(passes.PIPELINES[name])


@pytest.mark.parametrize("text", ["", "retain-in-ub", "compensate-gemm{stages=dk+dq,retile=true},split-oversize{most=3}"])
def test_the_text_reads_back(text: str) -> None:
    assert format_pipeline(parse_pipeline(text)) == text


def test_lists_in_options() -> None:
    assert listed("a+b c") == ("a", "b", "c")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("retain-in", "no pass 'retain-in'\n  did you mean retain-in-ub?"),
        ("compensate-gemm{stage=dk}", "pass compensate-gemm: no option 'stage'\n  did you mean stages?"),
        ("name-workspaces{all=true}", "pass name-workspaces: no option 'all'\n  it has no options"),
        ("compensate-gemm{retile=yes}", "pass compensate-gemm: option retile=yes: expected true or false"),
        ("split-oversize{most=two}", "pass split-oversize: option most=two: expected an int"),
        ("split-oversize{most}", "pass split-oversize: option 'most' has no value\n  write most=VALUE"),
        ("split-oversize{most=1,most=2}", "pass split-oversize: option most is given twice"),
        ("retain-in-ub{", "cannot read 'retain-in-ub{' in the pipeline"),
        ("retain-in-ub,,x", "cannot read ',x' in the pipeline"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(FusionError) as error:
        parse_pipeline(text)
    assert message in str(error.value)
