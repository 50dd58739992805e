"""Words of messages: counts with their noun, and choices as a sentence says them."""

from __future__ import annotations

from collections.abc import Sequence


def count(number: int, noun: str, plural: str = "") -> str:
    """(1, "kernel") -> "1 kernel", (2, "kernel") -> "2 kernels"; `plural` where an s does not make it."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def either(names: Sequence[str]) -> str:
    """["a", "b", "c"] -> "a, b or c"."""
    return " or ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)
