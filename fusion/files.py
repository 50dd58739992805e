"""Files of caches, which other processes write and remove at the same time."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path


def newest_first(paths: Iterable[Path]) -> list[tuple[Path, int]]:
    """The files and folders that are still there, last changed first, each with its size in bytes."""
    found = list[tuple[float, Path, int]]()
    for path in paths:
        try:
            status = path.stat()
        except FileNotFoundError:
            continue
        found.append((status.st_mtime, path, status.st_size))
    return [(path, size) for _, path, size in sorted(found, key=lambda item: item[0], reverse=True)]


def keep_newest(paths: Iterable[Path], count: int) -> None:
    """Removes all but the newest `count` files."""
    for path, _ in newest_first(paths)[count:]:
        path.unlink(missing_ok=True)


def keep_bytes(paths: Iterable[Path], most: int) -> None:
    """Removes the oldest files, as far as all together have more than `most` bytes."""
    total = 0
    for path, size in newest_first(paths):
        total += size
        if total > most:
            path.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Writes the file whole or not at all, whoever else writes it; makes its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, partial = tempfile.mkstemp(dir=path.parent, suffix=".part")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(partial, path)
