"""Words of messages, and what is suggested for a mistyped name."""

from __future__ import annotations

import pytest

from fusion.errors import did_you_mean
from fusion.words import count, either


def test_one_of_a_thing_is_singular() -> None:
    assert [count(n, "kernel") for n in (0, 1, 2)] == ["0 kernels", "1 kernel", "2 kernels"]
    assert [count(n, "entry", "entries") for n in (1, 3)] == ["1 entry", "3 entries"]


def test_choices_read_as_a_sentence() -> None:
    assert [either(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a or b", "a, b or c"]


@pytest.mark.parametrize(
    ("name", "known", "said"),
    [
        ("911", ("910B1", "910B3", "910B4", "910C"), "did you mean 910B1?"),
        ("fp12", ("fp16", "fp32", "bf16", "float16"), "did you mean fp16 or fp32?"),
        ("MM", ("M", "N"), "did you mean M?"),
        ("--jason", ("--json", "--help"), "did you mean --json?"),
        ("zzz", ("b", "a"), "known: a, b"),
        ("zzz", (), "none is known"),
        ("zzz", tuple(f"n{i:02}" for i in range(15)), f"known: {', '.join(f'n{i:02}' for i in range(12))} and 3 more"),
    ],
)
def test_only_near_names_are_suggested(name: str, known: tuple[str, ...], said: str) -> None:
    assert did_you_mean(name, known) == said


def test_another_way_out_follows_the_suggestion() -> None:
    assert did_you_mean("910B33", ["910B3"], "give a .toml file") == "did you mean 910B3? If not, give a .toml file"
    assert did_you_mean("A100", ["910B3"], "give a .toml file") == "known: 910B3; or give a .toml file"
