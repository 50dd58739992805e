"""Output folders: whole or not at all, and only our own are replaced."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from fusion.errors import FusionError

MARKER = ".fusion-plan"
MARKER_TEXT = "fusion-plan wrote this folder and replaces it as a whole.\n"


def check_free(folder: Path) -> None:
    """Raises FusionError if something is there that is not ours to replace."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise FusionError(f"{folder} is {'a link' if folder.is_symlink() else 'a file'}", remedy="give another --out")
    if folder.is_dir() and not (folder / MARKER).is_file() and any(folder.iterdir()):
        raise FusionError(f"{folder} holds files that are not fusion-plan's", remedy="give another --out, or empty it yourself")


def write_folder(folder: Path, files: Mapping[str, str]) -> tuple[Path, ...]:
    """Writes the files (by their path inside) to a new folder beside it, then puts that in its place. Returns their paths."""
    check_free(folder)
    folder = folder.absolute()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    except OSError as error:
        raise FusionError(f"cannot write {folder}: {error.strerror}", remedy="give another --out") from error
    try:
        _fill(made, files)
        _replace(made, folder)
    except OSError as error:
        raise FusionError(f"cannot write {folder}: {error.strerror}", remedy="give another --out") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return tuple(folder / name for name in files)


def _fill(folder: Path, files: Mapping[str, str]) -> None:
    folder.chmod(0o755)
    for name, text in {**files, MARKER: MARKER_TEXT}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _replace(made: Path, folder: Path) -> None:
    """Puts the new folder where the old one is; the old one comes back if that fails."""
    check_free(folder)
    if not folder.exists():
        os.rename(made, folder)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{folder.name}-old-", dir=folder.parent))
    os.rename(folder, old)
    try:
        os.rename(made, folder)
    except OSError:
        os.rename(old, folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
