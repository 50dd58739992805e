"""Where fusion-plan keeps what it downloads, builds and remembers between runs."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """The folder for the toolchain and all caches: $FUSION_PLAN_HOME, else $XDG_CACHE_HOME/fusion-plan, else ~/.cache/fusion-plan."""
    explicit = os.environ.get("FUSION_PLAN_HOME")
    if explicit:
        return Path(explicit).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().resolve() / "fusion-plan"
