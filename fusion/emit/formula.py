"""Operations as short comments: a named value with all that its expression holds."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fusion.graph import Op
from fusion.graph.types import Operand

INFIX = {"add": ("+", 1), "sub": ("-", 1), "mul": ("*", 2), "div": ("/", 2), "ge": (">=", 0), "lt": ("<", 0)}
_NUMBERED = re.compile(r"(.+)__\d+\Z")


def base_name(value: str) -> str:
    """The named value in whose expression a value stands: `p` for `p__2`."""
    found = _NUMBERED.match(value)
    return found[1] if found else value


def shown(value: str) -> str:
    """A value's name without the number that a pass has built upon: `p_main` for `p__2_main`."""
    return re.sub(r"__\d+(?=_)", "", value)


def formula(op: Op, ops: Mapping[str, Op]) -> str:
    """`p = cast(exp(s - lse))`: operands without a name of their own are written out from `ops`."""
    return f"{shown(op.out)} = {_expression(op, ops)[0]}"


def _expression(op: Op, ops: Mapping[str, Op]) -> tuple[str, int]:
    """The text, and how tightly it binds."""
    args = [_operand(a, op, ops) for a in op.args]
    if op.fn in INFIX:
        sign, binds = INFIX[op.fn]
        left, right = _bound(args[0], binds), _bound(args[1], binds + (op.fn in ("sub", "div")))
        return f"{left} {sign} {right}", binds
    over = [f"over {' '.join(op.over)}"] if op.over else []
    conditions = [" and ".join(str(c) for c in op.where)] if op.where else []
    inside = ", ".join([*conditions, *(text for text, _ in args)])
    return f"{op.fn}({' '.join([inside, *over]).strip()})", 9


def _operand(arg: Operand, op: Op, ops: Mapping[str, Op]) -> tuple[str, int]:
    if not isinstance(arg, str):
        return f"{arg:g}", 9 if arg >= 0 else 0
    inner = ops.get(arg)
    return _expression(inner, ops) if inner and arg != op.out and arg != base_name(arg) else (shown(arg), 9)


def _bound(operand: tuple[str, int], binds: int) -> str:
    text, own = operand
    return text if own >= binds else f"({text})"
