"""What operators ask of their arguments, with one wording for all."""

from __future__ import annotations

from fusion.errors import FusionError

MASKED = -1.0e30  # finite, so that a row with no key in a block stays free of inf - inf


def multiple(operator: str, remedy: str = "", **pair: int) -> int:
    """`multiple(op, seq_len=100, chunk=64)`: the first divided by the second, refused where it leaves a rest."""
    (what, value), (of, unit) = pair.items()
    if unit < 1 or value % unit:
        fitting = f"{max(1, value // unit) * unit} or {(value // unit + 1) * unit}" if unit > 0 else "1 or more"
        raise FusionError(f"{what}={value} is no multiple of {of}={unit}", where=operator, remedy=remedy or f"use {fitting}")
    return value // unit


def at_least(operator: str, limit: int, remedy: str = "", **argument: int | None) -> None:
    """Refuses an argument below its limit; None stands for an option that is not used."""
    for what, value in argument.items():
        if value is not None and value < limit:
            raise FusionError(f"{what}={value} is less than {limit}", where=operator, remedy=remedy)


def softmax_scale(operator: str, given: float | None, dim: int) -> float:
    """What scores over `dim` elements are multiplied by: the given scale, else 1 / sqrt(dim)."""
    at_least(operator, 1, dim=dim)
    return dim**-0.5 if given is None else given


def at_most(operator: str, limit: int, remedy: str = "", **argument: int) -> None:
    """Refuses an argument above its limit."""
    for what, value in argument.items():
        if value > limit:
            raise FusionError(f"{what}={value} is more than {limit}", where=operator, remedy=remedy)
