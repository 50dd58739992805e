"""Options that the commands on one operator share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def operator_options(shape: str) -> Decorator:
    """`--shape` (with this help), `--dtype`, `--device` and `--passes`, in this order."""
    options = (
        click.option("--shape", multiple=True, metavar="K=V,...", help=shape),
        click.option("--dtype", default="", metavar="TYPE", help="The operator's dtype, like bfloat16."),
        click.option(
            "--device", default="910B3", show_default=True, metavar="NAME|FILE", help="A known device, or a .toml file of one's own."
        ),
        click.option(
            "--passes",
            "pipeline",
            default="default",
            show_default=True,
            metavar="A,B{OPT=1}",
            help="Passes on the plan, a pipeline of `fusion-plan passes`, or none.",
        ),
    )

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add
