"""Results of lowering on disk, one file each, by the hash of everything that they depend on."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from fusion.files import keep_newest, write_whole
from fusion.toolchain import layout

Json: TypeAlias = "dict[str, object]"

MOST_RESULTS = 4000
KEPT_RESULTS = 3000
"""When there are more than MOST_RESULTS, the oldest go until KEPT_RESULTS are left."""

KEPT_ERRORS = ("fatal", "frontend")
"""Errors that the same input gives again; a crash or a timeout may have come from the machine."""


def key(job: Mapping[str, object], version: str) -> str:
    """The hash of a job for one version of the compiler and of the worker's code."""
    text = json.dumps([job, version, _worker_code()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _worker_code() -> str:
    digest = hashlib.sha256()
    for path in sorted(layout.WORKER.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def get(name: str) -> Json | None:
    """A stored result, None if there is none; a damaged file counts as none."""
    try:
        return json.loads(_path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def put(name: str, result: Mapping[str, object]) -> None:
    """Store a result, whole or not at all; a full or read-only disk only costs the next run its time."""
    error = result.get("error")
    if isinstance(error, dict) and error.get("kind") not in KEPT_ERRORS:
        return
    with contextlib.suppress(OSError):
        write_whole(_path(name), json.dumps(result))


def count() -> int:
    """How many results are stored."""
    return len(_all())


def prune() -> None:
    """Drop the oldest results when there are too many."""
    files = _all()
    if len(files) <= MOST_RESULTS:
        return
    keep_newest(files, KEPT_RESULTS)


def _all() -> list[Path]:
    return sorted(layout.results().glob("*.json"))


def _path(name: str) -> Path:
    return layout.results() / f"{name}.json"
