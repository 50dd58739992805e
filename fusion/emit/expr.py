"""Source text of loop bounds and tile starts."""

from __future__ import annotations

from fusion.plan.masks import Bound
from fusion.plan.tiling import Tiling


def affine(terms: list[tuple[str, int]], const: int) -> str:
    """`a * 64 - b + 3` from (text, coefficient) terms."""
    parts = [(f"{t}" if abs(c) == 1 else f"{t} * {abs(c)}", c) for t, c in terms if c]
    text = ""
    for part, c in parts:
        text += (" + " if c > 0 else " - ") + part if text else (part if c > 0 else f"-{part}")
    if const or not text:
        text += (f" + {const}" if const > 0 else f" - {-const}") if text else str(const)
    return text


def tile_limits(tiling: Tiling, bounds: tuple[Bound, ...], loop: str, index: dict[str, str], exact: bool) -> tuple[str, str]:
    """First and one past last tile index of a loop, as source text over the tile indices in `index`.

    `exact` says that no block has an empty range; otherwise one (wholly masked) tile is visited.
    """
    tile, trips = tiling.tile(loop), tiling.trips(loop)
    lows, highs = list[str](), list[str]()
    for b in bounds:
        terms = [(index[d], c * tiling.tile(d)) for d, c in b.starts]
        if b.coefficient > 0:
            step = b.coefficient * tile
            # ceil(-(rest + c (tile - 1)) / (c tile)) as a floor division
            lows.append(f"({affine([(t, -c) for t, c in terms], -b.const - b.coefficient * (tile - 1) + step - 1)}) // {step}")
        else:
            highs.append(f"({affine(terms, b.const)}) // {-b.coefficient * tile} + 1")
    low = _nest("T.max", ["0", *lows])
    high = _nest("T.min", [str(trips), *highs])
    if not exact:
        low = _nest("T.min", [str(trips - 1), low]) if lows else low
        high = f"T.max({high}, {low} + 1)"
    return low, high


def _nest(function: str, parts: list[str]) -> str:
    text = parts[0]
    for p in parts[1:]:
        text = f"{function}({text}, {p})"
    return text
