"""Which passes there are: those of `passes/` and those that installed distributions add by entry points."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from importlib import import_module, metadata

from fusion.errors import FusionError, did_you_mean
from fusion.passes.base import KEBAB, AnyPass, CompilerPass, GraphPass, Level, Option, PlanPass

GROUP = "fusion_plan.passes"
OWN = "fusion-plan"


@dataclass(frozen=True)
class PassInfo:
    """A pass by name: where its class is (`module:Class`) and which distribution it belongs to. The class is imported on demand."""

    name: str
    target: str
    owner: str = OWN

    @cached_property
    def cls(self) -> type[AnyPass]:
        """The pass's class. Raises FusionError naming the owner if it cannot be imported or is no pass."""
        module, _, attribute = self.target.partition(":")
        try:
            found: object = getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise FusionError(f"cannot import {self.target}: {error}", where=self._where, remedy=f"reinstall {self.owner}") from error
        return self._checked(found)

    @property
    def _where(self) -> str:
        return f"pass {self.name} of {self.owner}"

    def _checked(self, found: object) -> type[AnyPass]:
        if not (isinstance(found, type) and issubclass(found, GraphPass | PlanPass | CompilerPass) and is_dataclass(found)):
            raise FusionError(f"{self.target} is no dataclass derived from GraphPass, PlanPass or CompilerPass", where=self._where)
        if getattr(found, "name", None) != self.name or not KEBAB.match(self.name):
            have = getattr(found, "name", None)
            raise FusionError(f"{self.target} calls itself {have!r}", where=self._where, remedy="one name everywhere, in kebab-case")
        if not found.doc():
            raise FusionError(f"{self.target} has no docstring", where=self._where)
        found.options()
        return found

    @property
    def level(self) -> Level:
        return self.cls.level

    @property
    def doc(self) -> str:
        """One sentence on what the pass does."""
        return self.cls.doc()

    @property
    def options(self) -> tuple[Option, ...]:
        return self.cls.options()


def registry() -> dict[str, PassInfo]:
    """All passes by name, sorted. Raises FusionError if two distributions use one name."""
    import passes

    own = (PassInfo(name, target) for name, target in passes.PASSES.items())
    return joined([*own, *installed()])


def installed() -> tuple[PassInfo, ...]:
    """The passes of other distributions."""
    points = metadata.entry_points(group=GROUP)
    return tuple(PassInfo(p.name, p.value, p.dist.name if p.dist else "an unknown distribution") for p in points)


def joined(infos: Iterable[PassInfo]) -> dict[str, PassInfo]:
    """The passes by name, sorted; a name that two owners claim is refused."""
    found: dict[str, PassInfo] = {}
    for info in infos:
        other = found.setdefault(info.name, info)
        if other != info:
            owners = f"{other.owner} ({other.target}) and by {info.owner} ({info.target})"
            raise FusionError(f"pass {info.name} is defined by {owners}", remedy=f"uninstall or rename one: pip uninstall {info.owner}")
    return dict(sorted(found.items()))


def find(name: str) -> PassInfo:
    """The pass called `name`. Raises FusionError with the closest names."""
    known = registry()
    if name not in known:
        raise FusionError(f"no pass {name!r}", remedy=did_you_mean(name, known))
    return known[name]
