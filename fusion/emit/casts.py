"""Casts as chains of the conversions that the Vector unit has, such that only the last rounding counts."""

from __future__ import annotations

CASTABLE = ("float32", "float16", "bfloat16", "int32", "int8")
_TO_INT8 = ("float32", "float16", "int8")  # from int32: small integers are exact in all of them
_CHAINS: dict[tuple[str, str], tuple[str, ...]] = {
    ("float32", "int8"): ("int32", *_TO_INT8),  # rounded to an integer first: float16 would round twice
    ("bfloat16", "int8"): ("int32", *_TO_INT8),
    ("int32", "int8"): _TO_INT8,
    ("int8", "float32"): ("float16", "float32"),
    ("int8", "bfloat16"): ("float16", "float32", "bfloat16"),
    ("int8", "int32"): ("float16", "int32"),
    ("int32", "float16"): ("float32", "float16"),
    ("int32", "bfloat16"): ("float32", "bfloat16"),
    ("float16", "bfloat16"): ("float32", "bfloat16"),
    ("bfloat16", "float16"): ("float32", "float16"),
}


def chain(source: str, target: str) -> tuple[str, ...]:
    """The dtypes that a cast goes through, the last one included; all others are one conversion."""
    return _CHAINS.get((source, target), (target,))
