"""The pages about passes are what the passes do."""

from __future__ import annotations

import re
from pathlib import Path

import passes
from fusion.passes import CompilerPass
from fusion.passes.catalogue import page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_walk_through_works() -> None:
    text = (DOCS / "add_a_pass.md").read_text()
    assert text.count("\n") < 200
    names: dict[str, object] = {"__name__": "add_a_pass"}
    for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        exec(compile(block, "add_a_pass.md", "exec", dont_inherit=True), names)
    made = names["CountLoops"]
    assert isinstance(made, type) and issubclass(made, CompilerPass)
    assert [o.default for o in made.options()] == [8]


def test_the_catalogue_is_up_to_date() -> None:
    assert (DOCS / "passes.md").read_text() == "\n".join(page()) + "\n", "run python -m fusion.passes.catalogue > docs/passes.md"
    assert all(f"## {name} (" in (DOCS / "passes.md").read_text() for name in passes.PASSES)
