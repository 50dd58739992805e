"""The main command in a home folder without caches, then again; verification cold and warm. The compiler is installed first.

    python benchmarks/main_job.py

Prints one line per target; exits 1 if one is missed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fusion.toolchain import ensure, layout

MAIN = "gqa_sink_bwd --target 2 --no-verify"
VERIFY = "verify gqa_sink_bwd --target 2"
STEPS = (
    ("main command, nothing cached", MAIN, 25.0),
    ("main command, repeated", MAIN, 3.0),
    ("verification, nothing simulated before", VERIFY, 30.0),
    ("verification, repeated", VERIFY, 10.0),
)


def seconds(arguments: str, folder: str, home: Path) -> float:
    """Wall seconds of one command."""
    start = time.perf_counter()
    env = {**os.environ, "FUSION_PLAN_HOME": str(home)}
    subprocess.run(
        [sys.executable, "-m", "fusion.cli.main", *arguments.split()], cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - start


def main() -> int:
    ensure()
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        (home / "toolchain").symlink_to(layout.root())
        for what, arguments, most in STEPS:
            took = seconds(arguments, folder, home)
            missed += took > most
            print(f"{what:40} {took:6.1f} s, target {most:4.0f} s{'' if took <= most else '  MISSED'}", flush=True)
        subprocess.run(
            [sys.executable, "-m", "fusion.cli.main", "toolchain", "stop"], env={**os.environ, "FUSION_PLAN_HOME": str(home)}, check=False
        )
        shutil.rmtree(home / "run", ignore_errors=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
