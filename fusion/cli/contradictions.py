"""Options that contradict each other, or that nothing comes of without another: refused, never dropped in silence."""

from __future__ import annotations

import click
from click.core import ParameterSource

from fusion.errors import FusionError


def exclusive(first: str, *others: str, why: str) -> None:
    """Refuses `first` together with any of `others`, if both stand on the command line. Options by their spelling: "--json"."""
    for other in others:
        if given(first) and given(other):
            raise FusionError(f"{first} and {other} exclude each other: {why}", remedy="leave out one of them")


def needs(option: str, other: str, why: str) -> None:
    """Refuses `option` on the command line without `other`."""
    if given(option) and not given(other):
        raise FusionError(f"{option} does nothing without {other}: {why}", remedy=f"add {other}, or leave out {option}")


def given(option: str) -> bool:
    """Whether an option of the running command (or an argument, like "FILES") stands on the command line."""
    context = click.get_current_context()
    parameter = next(p for p in context.command.params if {option, option.lower()} & {*p.opts})
    return context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
