"""From what a plan file says to a plan: what it leaves open is chosen, the cheapest legal way; what it says is kept, and checked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from fusion.cost.model import estimate
from fusion.errors import FusionError, did_you_mean
from fusion.graph import StageGraph
from fusion.plan.device import Limits
from fusion.plan.planfile import HandoffLine, KernelLines, PlanLines
from fusion.plan.realize import assignments, default_kernel, placements
from fusion.plan.rules import PLAN_RULES, kernel_refusals
from fusion.plan.structure import Structure
from fusion.plan.tiling import FRACTAL, Tiling, matrix_dims, round_up, tilings
from fusion.plan.types import Handoff, Kernel, Plan, Refusal


@dataclass(frozen=True)
class _Found:
    """The cheapest way for a kernel, or the refusals of the way that breaks least."""

    kernel: Kernel | None
    us: float
    refusals: tuple[Refusal, ...]


@dataclass(frozen=True)
class _Tried:
    """All kernels of the file under one tiling."""

    tiling: Tiling
    kernels: tuple[_Found, ...]

    @property
    def broken(self) -> int:
        return sum(len(k.refusals) for k in self.kernels)

    @property
    def us(self) -> float:
        return sum(k.us for k in self.kernels)


@dataclass(frozen=True)
class Completion:
    """A plan file against the graph of its operator. With `check` off an illegal kernel is kept as it is written, for passes to repair."""

    lines: PlanLines
    graph: StageGraph
    limits: Limits
    check: bool = True

    def plan(self) -> Plan:
        """The plan. Raises FusionError with the line, the rule and the numbers."""
        self._names()
        tried: list[_Tried] = []
        for tiling in self._tilings():
            found = tuple(self._kernel(tiling, k) for k in self.lines.kernels)
            tried.append(_Tried(tiling, found))
        best = min(tried, key=lambda t: (t.broken, t.us))
        if best.broken and (self.check or any(k.kernel is None for k in best.kernels)):
            raise self._refused(best.kernels)
        return self._checked(self._made(best.tiling, best.kernels))

    def _made(self, tiling: Tiling, found: tuple[_Found, ...]) -> Plan:
        kernels = tuple(f.kernel for f in found if f.kernel)
        host = tuple(s.name for s in self.graph.stages if s.name in dict(self.lines.host))
        return Plan(self.graph, tiling.tiles, kernels, host, self.lines.device or "910B3", tuple(self.lines.notes))

    def _refused(self, found: tuple[_Found, ...]) -> FusionError:
        for kernel, f in zip(self.lines.kernels, found, strict=True):
            if f.refusals:
                return self.lines.error(kernel.line, f"kernel {kernel.name}: {f.refusals[0]}")
        return self.lines.error(0, "no tiling fits this plan")

    def _checked(self, plan: Plan) -> Plan:
        for rule in PLAN_RULES if self.check else ():
            for where, why in rule(plan):
                line = next((n for k in self.lines.kernels for s, n in k.stages if s == where), 0)
                raise self.lines.error(line, f"{where}: {why} (rule {rule.__name__.replace('_', '-')})")
        return plan

    # ---- names

    def _names(self) -> None:
        """Every name in the file is one of the operator's, and every stage is placed once."""
        if self.lines.operator and self.lines.operator != self.graph.name:
            raise self.lines.error(0, f"this is a plan for {self.lines.operator}, not for {self.graph.name}")
        stages = {s.name for s in self.graph.stages}
        seen: dict[str, int] = {}
        for name, line in [*(s for k in self.lines.kernels for s in k.stages), *self.lines.host]:
            if name not in stages:
                raise self.lines.error(line, f"no stage {name!r} in {self.graph.name}", did_you_mean(name, stages))
            if name in seen:
                raise self.lines.error(line, f"stage {name} is already in line {seen[name]} (rule every-stage-runs-once)")
            seen[name] = line
        missing = [s.name for s in self.graph.stages if s.name not in seen]
        if missing:
            raise self.lines.error(0, f"stages left out: {', '.join(missing)} (rule every-stage-runs-once)", "put each into a kernel")
        self._dims()

    def _dims(self) -> None:
        dims = {d.name for d in self.graph.dims}
        for kernel in self.lines.kernels:
            if not kernel.stages:
                raise self.lines.error(kernel.line, f"kernel {kernel.name} has no stages")
            for d in (*(kernel.grid or ()), *(kernel.loops or ())):
                if d not in dims:
                    raise self.lines.error(kernel.line, f"kernel {kernel.name}: no dim {d!r}", did_you_mean(d, dims))
        tiled = matrix_dims(self.graph)
        for d, (size, line) in self.lines.tiles.items():
            if d not in dims:
                raise self.lines.error(line, f"no dim {d!r} in {self.graph.name}", did_you_mean(d, dims))
            if d not in tiled:
                raise self.lines.error(line, f"dim {d} is walked one index at a time", f"tiled: {', '.join(sorted(tiled))}")
            if size < 1 or size % FRACTAL:
                raise self.lines.error(line, f"tile {d}={size} is no multiple of {FRACTAL}", f"use {round_up(max(size, 1), FRACTAL)}")

    # ---- tiles

    def _tilings(self) -> Iterator[Tiling]:
        """Tilings that agree with the file; a tile larger than its dim shrinks to it."""
        seen: set[tuple[tuple[str, int], ...]] = set()
        for tiling in tilings(self.graph):
            tiles = tuple((d, self._tile(d, t)) for d, t in tiling.tiles)
            if tiles not in seen:
                seen.add(tiles)
                yield Tiling(self.graph, tiles)

    def _tile(self, dim: str, otherwise: int) -> int:
        if dim not in self.lines.tiles:
            return otherwise
        return min(self.lines.tiles[dim][0], round_up(self.graph.dim(dim).size, FRACTAL))

    # ---- kernels

    def _kernel(self, tiling: Tiling, lines: KernelLines) -> _Found:
        inside = {s for s, _ in lines.stages}
        stages = tuple(s.name for s in self.graph.stages if s.name in inside)
        return _KernelChoice(self, tiling, lines, stages).best()


@dataclass(frozen=True)
class _KernelChoice:
    """One kernel of the file under one tiling."""

    file: Completion
    tiling: Tiling
    lines: KernelLines
    stages: tuple[str, ...]

    def best(self) -> _Found:
        legal: _Found | None = None
        least: _Found | None = None
        for kernel, structure in self._candidates():
            broken = (*self._contradictions(kernel), *kernel_refusals(structure, kernel, self.file.limits))
            refusals = tuple(dict.fromkeys(broken))
            us = estimate(structure, kernel, self.file.limits.device).us if not refusals else float("inf")
            found = _Found(kernel, us, refusals)
            if not refusals and (legal is None or us < legal.us):
                legal = found
            if least is None or len(refusals) < len(least.refusals):
                least = found
        if legal is None and least is None:
            return _Found(None, float("inf"), (Refusal("dims-are-placed", self.lines.name, "no grid and loops agree with what is given"),))
        return legal or least or _Found(None, 0.0, ())

    def _candidates(self) -> Iterator[tuple[Kernel, Structure]]:
        for grid, loops in self._spreads():
            structure = Structure(self.tiling, self.stages, grid, loops)
            kernel = self._overridden(structure, default_kernel(structure, self.lines.name, self.file.limits))
            given = self.lines.persistent
            for persistent in (False, True) if given is None else (given,):
                if not persistent or kernel.grid or given:
                    yield replace(kernel, persistent=persistent), structure

    def _spreads(self) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
        """Grid and loops as given, without dims of a single tile; what is left open in all ways."""
        grid, loops = self._several(self.lines.grid), self._several(self.lines.loops)
        if grid is None and loops is None:
            yield from ((way.grid, way.loops) for way in assignments(self.tiling, self.stages))
            return
        mine = [d for d in self.tiling.spread if d in self._dims]
        if loops is None:
            loops = tuple(d for d in mine if d not in (grid or ()))
        if grid is None:
            grid = tuple(d for d in mine if d not in loops)
        yield grid, loops

    @cached_property
    def _dims(self) -> frozenset[str]:
        return frozenset(d for s in self.stages for d in self.file.graph.stage_dims(s))

    def _several(self, dims: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return None if dims is None else tuple(d for d in dims if self.tiling.trips(d) > 1)

    def _overridden(self, structure: Structure, kernel: Kernel) -> Kernel:
        given = {h.value: h for h in self.lines.handoffs}
        handoffs = tuple(_with(h, given[h.value]) if h.value in given else h for h in kernel.handoffs)
        threads = self.lines.threads or kernel.threads
        return replace(kernel, handoffs=handoffs, threads=threads, placements=placements(structure, handoffs))

    def _contradictions(self, kernel: Kernel) -> Iterator[Refusal]:
        """What the file says of values, and this way of spreading the kernel makes otherwise."""
        crossing = [h.value for h in kernel.handoffs]
        for h in (h for h in self.lines.handoffs if h.value not in crossing):
            known = did_you_mean(h.value, crossing) if crossing else "nothing does"
            yield Refusal("as-written", h.value, f"line {h.line} hands it over, but it does not go between Cube and Vector here; {known}")
        for p in self.lines.places:
            have = kernel.place(p.value)
            if have != p.memory:
                really = f"it lives in {have}" if have else "no other stage sees it"
                yield Refusal("as-written", p.value, f"line {p.line} places it in {p.memory}, but {really}")


def _with(handoff: Handoff, line: HandoffLine) -> Handoff:
    return replace(
        handoff,
        kind=line.kind,
        name=line.name or handoff.name,
        slots=handoff.slots if line.slots is None else line.slots,
        free=handoff.free if line.free is None else line.free,
    )
