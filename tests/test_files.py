"""Files of caches that others write and remove at the same time."""

from __future__ import annotations

import os
from pathlib import Path

from fusion.files import keep_bytes, keep_newest, newest_first, write_whole


def aged(folder: Path, *sizes: int) -> list[Path]:
    """Files named 0, 1, ... with these sizes, each younger than the one before."""
    made = [folder / str(i) for i in range(len(sizes))]
    for i, (path, size) in enumerate(zip(made, sizes, strict=True)):
        path.write_bytes(b"x" * size)
        os.utime(path, (i, i))
    return made


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_files_that_vanish_meanwhile_are_no_error(tmp_path: Path) -> None:
    made = aged(tmp_path, 3, 4, 5)
    made[1].unlink()
    assert newest_first(made) == [(made[2], 5), (made[0], 3)]
    keep_newest(made, 1)
    assert names(tmp_path) == ["2"]


def test_the_oldest_go_until_the_rest_has_room(tmp_path: Path) -> None:
    keep_bytes(aged(tmp_path, 10, 10, 10, 10), 25)
    assert names(tmp_path) == ["2", "3"]


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    target = tmp_path / "new" / "a.json"
    write_whole(target, "one")
    write_whole(target, "two")
    assert (target.read_text(), names(target.parent)) == ("two", ["a.json"])
