"""name-workspaces: the GM name of every handoff says that it is a workspace."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from fusion.passes import PassResult, PlanPass
from fusion.plan.types import Handoff, Kernel, Plan

MARK = "workspace"


@dataclass(frozen=True)
class NameWorkspaces(PlanPass):
    """Renames every handoff whose GM name lacks "workspace", for the compiler inserts flags by that name only.

    Before: `s` cube->vector through `scores`              no flag is set after the store, none waited for before the load
    After:  `s` cube->vector through `workspace_scores`

    Refuses when: never. A name that is taken gets a number.
    Source: the compiler's CombineCV looks for the word in the buffer's name, and for nothing else.
    """

    name: ClassVar[str] = "name-workspaces"

    def apply(self, artefact: Plan) -> PassResult[Plan]:
        after = replace(artefact, kernels=tuple(map(_named, artefact.kernels)))
        return PassResult(after, after != artefact)


def _named(kernel: Kernel) -> Kernel:
    taken = {h.name for h in kernel.handoffs if MARK in h.name}
    handoffs: list[Handoff] = []
    for h in kernel.handoffs:
        name = h.name if MARK in h.name else _fresh(f"{MARK}_{h.name}", taken)
        taken.add(name)
        handoffs.append(replace(h, name=name))
    return replace(kernel, handoffs=tuple(handoffs))


def _fresh(name: str, taken: set[str]) -> str:
    numbered = (name if n == 1 else f"{name}_{n}" for n in range(1, len(taken) + 2))
    return next(n for n in numbered if n not in taken)
