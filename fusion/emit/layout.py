"""Breaks generated Python lines that are too long, the way `ruff format` does."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

WIDTH = 140
AMBIGUOUS = "# ruff: noqa: E741"  # for parameters called O, l or I, as the operator calls them
_OPEN, _CLOSE = "([{", ")]}"


def ambiguous(names: Iterable[str]) -> list[str]:
    """The line that lets a file use names that ruff finds hard to read, if it does."""
    return [AMBIGUOUS] if {"O", "l", "I"} & set(names) else []


def tidy(line: str) -> list[str]:
    """A line of code as `ruff format` leaves it: slices spaced, numbers short, broken if too long."""
    if line.lstrip().startswith("#"):
        return fit(line)
    line = re.sub(r"(?<=[\[ ])(\d+):([^\],:]* [^\],:]*)(?=[\],])", r"\1 : \2", line)
    return fit(re.sub(r"(?<=\d)e\+(?=\d)", "e", line))


def fit(line: str) -> list[str]:
    """The line, or several: a comment wrapped, a call with its arguments indented on one line or, if that is too long, each on its own."""
    indent = line[: len(line) - len(line.lstrip())]
    if len(line) <= WIDTH:
        return [line]
    if line.lstrip().startswith("#"):
        return textwrap.wrap(line, WIDTH, initial_indent="", subsequent_indent=f"{indent}#   ", break_long_words=False)
    end = len(line) - (2 if line.endswith(("):", "),", "],")) else 1)
    start = _opening(line, end)
    if start < 0:
        return [line]
    items = split_items(line[start + 1 : end])
    body = f"{indent}    {', '.join(items)}"
    apart = [x for i in items for x in fit(f"{indent}    {i},")] if len(items) > 1 else fit(body)
    inner = [body] if len(body) <= WIDTH else apart
    return [line[: start + 1], *inner, indent + line[end:]]


def listed(prefix: str, items: list[str], suffix: str) -> list[str]:
    """`prefix item, item suffix` on one line if that fits, else each item on its own line: how literals and targets are broken."""
    indent = prefix[: len(prefix) - len(prefix.lstrip())]
    line = f"{prefix}{', '.join(items)}{suffix}"
    return [line] if len(line) <= WIDTH else [prefix, *(f"{indent}    {i}," for i in items), indent + suffix]


def _opening(line: str, end: int) -> int:
    """The bracket that the one at `end` closes, -1 if there is none there."""
    if end >= len(line) or line[end] not in _CLOSE:
        return -1
    depth = 0
    for at in range(end, -1, -1):
        depth += (line[at] in _CLOSE) - (line[at] in _OPEN)
        if depth == 0:
            return at
    return -1


def split_items(text: str) -> list[str]:
    """Comma-separated items, commas inside of brackets left alone."""
    items, depth, start = list[str](), 0, 0
    for at, c in enumerate(text):
        depth += (c in _OPEN) - (c in _CLOSE)
        if c == "," and depth == 0:
            items.append(text[start:at].strip())
            start = at + 1
    return [i for i in (*items, text[start:].strip()) if i]
