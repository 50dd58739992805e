"""Names that a parameter of a generated kernel cannot have: those of TileLang source, and of the Ascend C that becomes of it."""

from __future__ import annotations

import re

_SOURCE = "T tilelang main cid vid task pass_configs"
_GENERATED = "pipe stream call fftsAddr fftsLen main_kernel main_kernel_tiling ascend_l0a ascend_l0b ascend_l0c ascend_l1 ascend_ub"
_TYPES = "half bfloat16_t uint uchar ushort float double int char bool void long short signed unsigned wchar_t AscendC Catlass tl"
_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor case catch class compl concept const consteval constexpr constinit const_cast continue
decltype default delete do dynamic_cast else enum explicit export extern false for friend goto if inline mutable namespace new noexcept
not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires return sizeof static static_assert
static_cast struct switch template this thread_local throw true try typedef typeid typename union using virtual volatile while xor xor_eq
"""
RESERVED = frozenset(f"{_SOURCE} {_GENERATED} {_TYPES} {_KEYWORDS}".split())
_INDICES = re.compile(r"block_\w+|\w+_(i|t|first|row|at)")
"""Tile sizes, loop counters and what else emission calls after a dim or a value."""


def reserved(name: str) -> bool:
    return name in RESERVED or bool(_INDICES.fullmatch(name))
