# pyright: basic
"""Prove an installation: start the compiler, lower a kernel for both targets, print the version as the last line."""

from __future__ import annotations

import argparse
from pathlib import Path


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--stubs", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.stubs:
        from . import stubs

        stubs.install()
    from . import job, warmup

    assert job.RESULT
    print(warmup.lower_once(arguments.folder), flush=True)
