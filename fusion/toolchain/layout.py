"""Where the toolchain lives below fusion-plan's home folder."""

from __future__ import annotations

from pathlib import Path

from fusion import paths

WORKER = Path(__file__).resolve().parent / "worker"


def root() -> Path:
    """Everything that `toolchain install` puts on this machine; a link to another disk is followed."""
    return (paths.home() / "toolchain").resolve()


def site() -> Path:
    """The compiler and the Python packages that it imports."""
    return root() / "site"


def sysroot() -> Path:
    """An aarch64 Python 3.11 and its libraries."""
    return root() / "sysroot"


def emulator() -> Path:
    return root() / "emulator" / "qemu-aarch64"


def manifest() -> Path:
    """Written last by an installation; without it nothing counts as installed."""
    return root() / "installed.json"


def results() -> Path:
    """Cached lowerings."""
    return paths.home() / "cache" / "lower"


def run() -> Path:
    """Sockets, logs and job folders of running workers."""
    return paths.home() / "run"
