"""The real tilelang-ascend compiler on any machine: found or installed, kept running, its results cached.

`lower` is what most callers want. Nothing heavy is imported here.
"""

from __future__ import annotations

from pathlib import Path

from fusion.toolchain import daemon, discover
from fusion.toolchain.daemon import WorkerState
from fusion.toolchain.discover import Compiler, find
from fusion.toolchain.installation import announcement, ensure, install, possible_kind, remove
from fusion.toolchain.lowering import lower
from fusion.toolchain.model import (
    TARGETS,
    ErrorKind,
    KernelSource,
    Lowered,
    LowerError,
    OnChip,
    Param,
    Role,
    Target,
    TirPass,
)
from fusion.toolchain.state import Status, status

__all__ = [
    "TARGETS",
    "Compiler",
    "ErrorKind",
    "KernelSource",
    "LowerError",
    "Lowered",
    "OnChip",
    "Param",
    "Role",
    "Status",
    "Target",
    "TirPass",
    "WorkerState",
    "announcement",
    "catlass_dir",
    "ensure",
    "find",
    "install",
    "lower",
    "possible_kind",
    "remove",
    "status",
    "stop",
    "templates_dir",
    "warm",
]


def templates_dir() -> Path:
    """The include folder with `tl_templates/ascend/common.h`, installing the compiler if there is none; raises FusionError."""
    return discover.templates(ensure())


def catlass_dir() -> Path:
    """The include folder with `catlass/`, installing the compiler if there is none; raises FusionError."""
    return discover.catlass(ensure())


def warm() -> None:
    """Start the worker in the background if there is a compiler, so that it is up when `lower` is called; never fails."""
    found = find()
    if found is not None:
        try:
            daemon.warm(found)
        except Exception:
            return


def stop() -> int:
    """Stop the running workers; returns how many there were."""
    return daemon.stop_all()
