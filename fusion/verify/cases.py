"""What a verification runs: cases by level, general ones for every operator and those that an operator's family adds.

L0 is regular shapes and both dtypes, L1 tails, primes and value ranges; both block. L2 is illegal input, which must be refused by name.
`boundary` has infinities, NaN and extremes, and only warns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from fusion.errors import FusionError
from fusion.graph import Operator
from fusion.verify.data import Draw
from fusion.verify.shrink import Parameters, small_parameters

LEVELS = ("L0", "L1", "L2", "boundary")
BLOCKING = ("L0", "L1", "L2")


@dataclass(frozen=True)
class Case:
    """Parameters of the operator and how its inputs are drawn. `refused` says that building the operator must fail."""

    name: str
    level: str
    parameters: tuple[tuple[str, int | float | bool | str | None], ...]
    draw: Draw = field(default_factory=Draw)
    refused: bool = False


def cases_of(operator: Operator[...], values: Mapping[str, int | float | bool | str | None], levels: tuple[str, ...]) -> list[Case]:
    """The cases of the levels, at small shapes derived from the given parameters."""
    base = small_parameters(operator, values)
    found = [*_own(operator, base, values), *_general(operator, base)]
    return [c for c in dict.fromkeys(found) if c.level in levels]


def default_case(operator: Operator[...], values: Mapping[str, int | float | bool | str | None]) -> Case:
    """The one case that runs when no level is asked for."""
    return _case("small shape", "L0", small_parameters(operator, values))


def _case(name: str, level: str, parameters: Parameters, draw: Draw | None = None) -> Case:
    return Case(name, level, tuple(sorted(parameters.items())), draw or Draw())


def _own(operator: Operator[...], base: Parameters, given: Mapping[str, int | float | bool | str | None]) -> list[Case]:
    """Cases that the operator's family lists in kernels/cases.py; what the user gave is kept."""
    from kernels.cases import CASES

    found: list[Case] = []
    for level, name, changes, draw in CASES.get(operator.name, ()):
        kept = {k: v for k, v in changes.items() if k not in given or k not in ("dtype", "window")}
        found.append(_case(name, level, base | kept, Draw(0, draw.get("scale", 1.0), draw.get("shift", 0.0))))
    return found


def _general(operator: Operator[...], base: Parameters) -> list[Case]:
    known = operator.parameters
    found = [_case("small shape", "L0", base), _case("another draw", "L0", base, Draw(seed=1))]
    if "dtype" in known:
        found += [_case(f"dtype {t}", "L0", base | {"dtype": t}) for t in ("float16", "bfloat16")]
    found += [
        _case("values times 0.1", "L1", base, Draw(seed=2, scale=0.1)),
        _case("values times 2", "L1", base, Draw(seed=3, scale=2.0)),
        _case("values times 0.5 plus 0.25", "L1", base, Draw(seed=4, scale=0.5, shift=0.25)),
    ]
    found += [_case(f"{name}={size}", "L1", base | {name: size}) for name, size in _odd_sizes(operator, base)]
    found += [_case(kind, "boundary", base, Draw(seed=5, special=kind)) for kind in ("inf", "nan", "extreme")]
    found += [
        replace(_case(f"{n}=0", "L2", base | {n: 0}), refused=True)
        for n, v in base.items()
        if isinstance(v, int) and not isinstance(v, bool) and v > 0
    ]
    return found + ([replace(_case("dtype float7", "L2", base | {"dtype": "float7"}), refused=True)] if "dtype" in known else [])


def _odd_sizes(operator: Operator[...], base: Parameters) -> list[tuple[str, int]]:
    """Prime and one-off sizes of the parameters that allow them."""
    found: list[tuple[str, int]] = []
    for name, value in base.items():
        if isinstance(value, int) and not isinstance(value, bool) and value >= 64:
            for size in (37, 127, value + 1):
                try:
                    operator.build(**(base | {name: size}))
                except FusionError:
                    continue
                found.append((name, size))
    return found
