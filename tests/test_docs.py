"""The pages of docs/ name what there is: every module, every page, every command and option."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click import Command, Context, Group
from click.testing import CliRunner

from fusion.cli.main import cli
from fusion.plan import rules
from tests import modules

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def test_every_module_is_on_the_map(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        modules.PAGE.write_text(modules.renewed())
    assert modules.PAGE.read_text() == modules.renewed(), "run pytest tests/test_docs.py --update-golden; put new files where they belong"


def test_every_module_says_what_it_is() -> None:
    assert [path for path in modules.modules() if not modules.sentence(path)] == []


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    assert [p.name for p in PAGES[1:] if p.name != "index.md" and f"]({p.name})" not in index] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_commands_and_options_exist(page: Path) -> None:
    for line in commands(page.read_text()):
        words = shlex.split(line.replace("[", "").replace("]", ""))
        command = find(words[1:])
        known = {name for parameter in command.params for name in parameter.opts} | {"--help", "--version"}
        assert [w for w in words if w.startswith("--") and w.partition("=")[0] not in known] == [], line


def test_commands_are_found_in_pages() -> None:
    assert len([c for page in PAGES for c in commands(page.read_text())]) > 20


def commands(text: str) -> list[str]:
    """The command lines of a page: indented, fenced, or between backticks."""
    found = re.findall(r"^(?:.*&& )?(?:\S*/)?(fusion-plan .*?)(?:  .*)?(?: #.*)?$", _code(text), re.MULTILINE)
    return found + re.findall(r"`(fusion-plan [^`\n]+)`", text)


def _code(text: str) -> str:
    fenced = re.findall(r"^```(?:sh)?\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return "\n".join([*fenced, *re.findall(r"^ {4}(\S.*)$", text, re.MULTILINE)])


def find(words: list[str]) -> Command:
    """The command that a command line runs; an operator's name stands for `plan`."""
    command: Command = cli
    for word in words:
        below = command.get_command(Context(command), word) if isinstance(command, Group) else None
        if below is None:
            break
        command = below
    operator = command is cli and words and not words[0].startswith("-")
    return find(["plan"]) if operator else command


def test_the_operator_of_the_walk_through_is_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "add_an_operator.md").read_text()
    (tmp_path / "scale_rows.py").write_text(re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[0])
    monkeypatch.chdir(tmp_path)
    lines = [line for line in commands(page) if "--fast" in line]
    assert lines
    for line in lines:
        result = CliRunner().invoke(cli, shlex.split(line)[1:])
        assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "scale_rows-1" / "host.py").is_file()


def test_the_rules_of_the_walk_through_exist() -> None:
    page = (ROOT / "docs" / "add_an_operator.md").read_text()
    table = page[page.index("| refused by") : page.index("If no count works")]
    assert set(re.findall(r"`([a-z]+(?:-[a-z]+)+)`", table)) <= {rule.__name__.replace("_", "-") for rule in rules.STRUCTURE_RULES}


def test_every_benchmark_is_listed() -> None:
    page = (ROOT / "benchmarks" / "README.md").read_text()
    assert [f.name for f in (ROOT / "benchmarks").glob("*.py") if f"| `{f.name}` |" not in page] == []
