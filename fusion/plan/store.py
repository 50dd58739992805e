"""What the planner found, remembered between runs: by operator, device, question, and everything that decides the answer."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import cast

from fusion.files import keep_newest, write_whole
from fusion.paths import home

KEEP = 300  # answers
DECIDES = ("cost", "device", "emit", "graph", "plan", "rules")


@cache
def _code() -> str:
    """A hash of the code and data that planning depends on."""
    root = Path(__file__).parent.parent
    files = sorted(f for part in DECIDES for f in (root / part).rglob("*") if f.suffix in (".py", ".toml", ".csv"))
    return hashlib.sha256(b"".join(f.read_bytes() for f in files)).hexdigest()


def _file(question: str) -> Path:
    name = hashlib.sha256(f"{_code()}\0{question}".encode()).hexdigest()
    return home() / "cache" / "plans" / f"{name}.json"


def recall(question: str) -> dict[str, object] | None:
    """The answer to a question that was asked before; None if there is none that can be read."""
    try:
        return cast("dict[str, object]", json.loads(_file(question).read_text()))
    except (OSError, ValueError):
        return None


def remember(question: str, answer: dict[str, object]) -> None:
    """Keeps an answer, whole or not at all, and forgets the oldest beyond KEEP."""
    path = _file(question)
    write_whole(path, json.dumps(answer))
    keep_newest(path.parent.glob("*.json"), KEEP)
