"""The map of modules, docs/modules.md: its order is kept by hand, its texts are the first sentences of the files themselves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "modules.md"
CODE = (".py", ".cpp", ".h", ".hpp", ".inl")
ENTRY = re.compile(r"^\| `(?P<path>[^`]+)` \| ")


def modules() -> list[str]:
    """Every file of code in the packages, by path; an empty `__init__.py` is none."""
    files = [f for package in ("fusion", "passes", "kernels") for f in (ROOT / package).rglob("*") if f.suffix in CODE]
    return sorted(str(f.relative_to(ROOT)) for f in files if f.stat().st_size)


def sentence(path: str) -> str:
    """What the file says of itself first."""
    text = (ROOT / path).read_text()
    if path.endswith(".py"):
        return (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0].replace("|", "\\|")
    return text.partition("\n")[0].removeprefix("//").strip()


def written() -> list[str]:
    """The paths on the page, in its order."""
    return [m["path"] for line in PAGE.read_text().splitlines() if (m := ENTRY.match(line))]


def renewed() -> str:
    """The page with today's sentences; what is gone is left out, and new files follow the last one of their folder."""
    lines = [line for line in PAGE.read_text().splitlines() if not (m := ENTRY.match(line)) or (ROOT / m["path"]).exists()]
    for path in modules():
        if path not in written():
            lines.insert(_place(lines, path), f"| `{path}` | |")
    return "\n".join(_filled(lines)) + "\n"


def _filled(lines: list[str]) -> Iterator[str]:
    for line in lines:
        entry = ENTRY.match(line)
        yield f"| `{entry['path']}` | {sentence(entry['path'])} |" if entry else line


def _place(lines: list[str], path: str) -> int:
    for folder in map(str, Path(path).parents):
        near = [i for i, line in enumerate(lines) if (m := ENTRY.match(line)) and (folder == "." or m["path"].startswith(folder + "/"))]
        if near:
            return near[-1] + 1
    return len(lines)
