"""Which GM buffers the compiler orders."""

from __future__ import annotations

MARK = "workspace"


def is_ordered(name: str) -> bool:
    """CombineCV inserts flags only around GM buffers whose name contains "workspace"."""
    return MARK in name


def renamed(name: str, taken: frozenset[str]) -> str:
    """A name that is ordered and not in use: scratch -> workspace_scratch."""
    fresh, number = f"{MARK}_{name}", 2
    while fresh in taken:
        fresh, number = f"{MARK}_{name}_{number}", number + 1
    return fresh
