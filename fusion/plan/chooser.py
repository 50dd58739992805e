"""The legal kernels for every set of atoms under one tiling, cheapest first, the host's help included."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from fusion.graph import StageGraph
from fusion.plan.atoms import Atoms, AtomSet
from fusion.plan.device import Limits
from fusion.plan.prefilter import Prefilter
from fusion.plan.realize import Realized, fits, legal_structures, options, sized
from fusion.plan.structure import Structure
from fusion.plan.tiling import Tiling, tilings

Sizes = tuple[int, ...]


class Offer:
    """A kernel that is legal if it fits the on-chip memories, which is worked out when it is asked for."""

    def __init__(self, option: Realized, limits: Limits) -> None:
        self.option, self.limits = option, limits

    @cached_property
    def fits(self) -> bool:
        return fits(self.option, self.limits)

    @cached_property
    def otherwise(self) -> Offer | None:
        """What to take if this does not fit."""
        other = self.option.otherwise(self.limits)
        return Offer(other, self.limits) if other else None


@dataclass(frozen=True)
class Choice:
    """A kernel for a set of atoms, the stages of the set that the host runs instead, and the cost of both in microseconds."""

    offer: Offer
    host: tuple[str, ...]
    us: float


@dataclass
class Shared:
    """What tilings with the same spread dims have in common: the legal structures of a set, and the prefilter."""

    prefilter: Prefilter
    structures: dict[AtomSet, list[Structure]] = field(default_factory=dict[AtomSet, list[Structure]])


@dataclass
class Chooser:
    """The choices for every set of atoms under one tiling, cheapest first; memory is looked at when a choice is about to be used."""

    tiling: Tiling
    atoms: Atoms
    limits: Limits
    shared: Shared
    offered: dict[tuple[AtomSet, Sizes], list[Offer]]  # by the set and the tile sizes that it sees, for all tilings
    choices: dict[AtomSet, list[Choice]] = field(default_factory=dict[AtomSet, list[Choice]])
    offers: dict[AtomSet, list[Offer]] = field(default_factory=dict[AtomSet, list[Offer]])

    def cost(self, atoms: AtomSet) -> float | None:
        """Microseconds of the cheapest kernel not known to overflow a memory, the host's part included; None if there is none."""
        choice = self.choose(atoms)
        return None if choice is None else choice.us

    def choose(self, atoms: AtomSet) -> Choice | None:
        """The cheapest choice not struck out."""
        found = self.choices.get(atoms)
        if found is None:
            found = self.choices[atoms] = self._choices(atoms)
        return found[0] if found else None

    def possible(self, atoms: AtomSet) -> bool:
        """False if no larger kernel with these atoms can be legal, whatever the host takes over."""
        rest = atoms - self.atoms.movable
        return not rest or self.shared.prefilter.possible(rest)

    def confirm(self, atoms: AtomSet) -> bool:
        """Whether the cheapest choice fits the memories; if not, it is struck out."""
        choices = self.choices[atoms]
        if choices[0].offer.fits:
            return True
        struck = choices.pop(0)
        other = struck.offer.otherwise
        if other:
            extra = struck.us - struck.offer.option.cost.us
            choices.append(Choice(other, struck.host, other.option.cost.us + extra))
            choices.sort(key=_order)
        return False

    @property
    def suits(self) -> bool:
        """Whether the tile sizes suit every stage that a kernel has to run."""
        return self.unsuited <= self.atoms.movable

    @cached_property
    def unsuited(self) -> AtomSet:
        """Atoms with a stage that the tile sizes do not suit, in whatever kernel."""
        return frozenset(a for a, stages in self.atoms.stages.items() if not all(sized(self.tiling, s, self.limits) for s in stages))

    def _choices(self, atoms: AtomSet) -> list[Choice]:
        found: list[Choice] = []
        for rest, host, extra in self.atoms.splits(atoms):
            found += [Choice(o, host, o.option.cost.us + extra) for o in self._offers(rest)]
        return sorted(found, key=_order)

    def _offers(self, atoms: AtomSet) -> list[Offer]:
        found = self.offers.get(atoms)
        if found is None:
            structures = self._structures(atoms)
            found = self.offers[atoms] = self._shared_offers(atoms, structures) if structures else []
        return found

    def _shared_offers(self, atoms: AtomSet, structures: list[Structure]) -> list[Offer]:
        """Those of an earlier tiling with the same sizes, if there was one."""
        key = (atoms, self._sizes(atoms))
        if key not in self.offered:
            known = () if atoms & self.unsuited else structures
            own = (s if s.tiling is self.tiling else s.retiled(self.tiling) for s in known)
            self.offered[key] = [Offer(o, self.limits) for o in options(own, self.limits)]
        return self.offered[key]

    def _sizes(self, atoms: AtomSet) -> Sizes:
        """The largest tile, which scratch and lanes follow, and the tiles of the dims that the atoms have."""
        have = 0
        for a in atoms:
            have |= self._tiled[a]
        return (self._largest, *(t if have >> i & 1 else 0 for i, (_, t) in enumerate(self.tiling.tiles)))

    @cached_property
    def _tiled(self) -> dict[str, int]:
        """The tiled dims of every atom, as bits."""
        names = [d for d, _ in self.tiling.tiles]
        return {a: sum(1 << i for i, d in enumerate(names) if d in dims) for a, dims in self.atoms.dims.items()}

    @cached_property
    def _largest(self) -> int:
        return max((t for _, t in self.tiling.tiles), default=1)

    def _structures(self, atoms: AtomSet) -> list[Structure]:
        known = self.shared.structures.get(atoms)
        if known is None:
            ways = self.shared.prefilter.legal_so_far(atoms)
            known = self.shared.structures[atoms] = legal_structures(self.tiling, self.atoms.stages_of(atoms), ways)
        return known


def _order(choice: Choice) -> tuple[float, int]:
    return choice.us, len(choice.host)


def choosers(graph: StageGraph, atoms: Atoms, limits: Limits) -> Iterator[Chooser]:
    """One for each tiling that suits all stages, small tiles first."""
    shared: dict[tuple[str, ...], Shared] = {}
    offered: dict[tuple[AtomSet, Sizes], list[Offer]] = {}
    for tiling in tilings(graph):
        if tiling.spread not in shared:
            shared[tiling.spread] = Shared(Prefilter(tiling, atoms.stages))
        chooser = Chooser(tiling, atoms, limits, shared[tiling.spread], offered)
        if chooser.suits:
            yield chooser
