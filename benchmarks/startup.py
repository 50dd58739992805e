"""How long `fusion-plan --help`, `list` and a plan without the compiler take: wall and processor seconds, the best of five.

python benchmarks/startup.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

COMMANDS = {
    "--help": 0.3,
    "plan --help": 0.3,
    "passes": 0.5,
    "gemm --fast": 3.0,
    "gqa_sink_bwd --target 2 --fast --shape window=128": 3.0,
}
"""Arguments, and the processor seconds that they may take."""


def measure(arguments: str, folder: str) -> tuple[float, float]:
    """Wall and processor seconds of one run."""
    before, start = os.times(), time.perf_counter()
    command = [sys.executable, "-m", "fusion.cli.main", *arguments.split()]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - start, used


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for arguments, limit in COMMANDS.items():
            wall, used = (min(x) for x in zip(*(measure(arguments, folder) for _ in range(5)), strict=True))
            print(f"{arguments:<52} {wall:6.2f} s  {used:6.2f} s CPU, at most {limit} s  {'ok' if used <= limit else 'TOO SLOW'}")


if __name__ == "__main__":
    main()
