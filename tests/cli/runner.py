"""Runs the console script in a process of its own, without the compiler unless it is asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

ROOT = Path(__file__).parents[2]


def run(*arguments: str, folder: Path, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """`fusion-plan ARGUMENTS` in a folder."""
    command = [sys.executable, "-m", "fusion.cli.main", *arguments]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "140", **(environment or {})}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=env)


def report(*arguments: str, folder: Path) -> dict[str, object]:
    """The object that --json prints, without lowering."""
    result = run(*arguments, "--json", "--target-code", "none", folder=folder)
    assert result.returncode == 0, result.stderr
    return cast("dict[str, object]", json.loads(result.stdout))
