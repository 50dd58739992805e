"""States of a scan: buffers that live across its steps."""

from __future__ import annotations

from dataclasses import dataclass, field

from fusion.emit.builder import KernelBuilder, Tile
from fusion.emit.operands import Operands
from fusion.emit.ub import UnifiedBuffer


@dataclass
class States:
    """Opens the states before the loop, and carries them on at the end of a step."""

    ub: UnifiedBuffer
    operands: Operands
    state_tiles: dict[str, Tile] = field(default_factory=dict[str, Tile])

    @property
    def b(self) -> KernelBuilder:
        return self.ub.b

    def open(self) -> None:
        """Buffers and initial values of the scan's states, before the loop."""
        for carry in self.b.structure.states.values():
            v = self.b.tiling.graph.value(carry.state)
            stage = self.b.structure.made[carry.next][0]
            split, dims = self.ub.split(carry.next), self.b.tiling.shape(carry.state)
            tile = self.ub.kept_tile(v, dims, split if split in dims else "", f"{carry.state}_ub")
            self.ub.tiles[(carry.state, tile.split, dims)] = tile
            self.ub.moving.add(tile.name)
            self.ub.state_names[tile.name] = carry.next
            self.state_tiles[carry.state] = tile
            if not isinstance(carry.init, str):
                self.b.add("prologue", stage.name, f"T.tile.fill({tile.name}, {float(carry.init)})")
            else:
                start = self.operands.fetch(stage, carry.init, dims, tile.split, "prologue")
                start = self.operands.broadcast(stage, carry.init, start, dims, tile.split, "prologue")
                self.b.add("prologue", stage.name, *self.ub.moved(start.name, tile.buffer))

    def close(self) -> None:
        """At the end of a step every state takes the value that it is carried to."""
        for carry in self.b.structure.states.values():
            split, dims = self.ub.split(carry.next), self.b.tiling.shape(carry.state)
            part = split if split in dims else ""
            old, new = self.state_tiles[carry.state], self.ub.tiles.get((carry.next, part, dims))
            assert new is not None, f"{carry.next} is not in UB at the end of the step"
            if new.name != old.name:
                stage = self.b.structure.made[carry.next][0]
                self.b.add(self.b.structure.levels[carry.next], stage.name, *self.ub.moved(new.name, old.buffer))
            self.ub.tiles[(carry.next, part, dims)] = old
