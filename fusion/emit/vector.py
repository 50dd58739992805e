"""Vector stages as tile code in UB."""

from __future__ import annotations

from fusion.emit.builder import KernelBuilder, Tile
from fusion.emit.conditions import SELECTED, Conditions
from fusion.emit.gathers import Gathers
from fusion.emit.operands import Operands
from fusion.emit.operations import Coder
from fusion.emit.ranks import Ranks
from fusion.emit.reductions import Reductions
from fusion.emit.results import Results
from fusion.emit.states import States
from fusion.emit.tile_ops import Operand
from fusion.emit.ub import UnifiedBuffer
from fusion.graph import Op, Stage, Value
from fusion.graph.ops import OPS
from fusion.plan.types import Level


class VectorEmitter:
    """Writes the Vector operations of one kernel."""

    def __init__(self, b: KernelBuilder) -> None:
        self.b = b
        self.ub = UnifiedBuffer(b)
        self.masks = Conditions(self.ub)
        self.coder = Coder(self.ub, self.masks)
        self.operands = Operands(self.ub, self.coder)
        self.results = Results(self.ub)
        self.gathers = Gathers(self.ub, self.operands, self.results)
        self.reductions = Reductions(self.ub, self.masks, self.operands, self.results)
        self.ranks = Ranks(self.ub, self.masks, self.operands, self.results)
        self.states = States(self.ub, self.operands)

    def emit(self, stage: Stage, op: Op, level: Level, position: int) -> None:
        """Writes an operation, what it needs before, and the store or handoff of its result."""
        self.ub.now = position
        if level == "epilogue":
            self.ub.expire()
        value = self.b.tiling.graph.value(op.out)
        if op.out in self.b.tiling.graph.silent or (op.out in self.b.tiling.graph.slices and not self.ub.leaves(op.out)):
            return  # loaded where it is used
        if not self.b.tiling.shape(op.out) and OPS[op.fn].form != "reduce":
            return  # a number for each block: worked out as a vector where it meets a tile
        self.b.explain(level, stage.name, op)
        form = OPS[op.fn].form
        if op.out in self.b.tiling.graph.slices:
            loaded = self.operands.fetch(stage, op.out, self.b.tiling.shape(op.out), "", level)
            self.results.finish(stage, op, value, self.results.copied(stage, value, loaded, level), "", level)
        elif op.out in self.b.tiling.graph.rows:
            self.gathers.gather(stage, op, value, level)
        elif form == "reduce":
            self.reductions.reduce(stage, op, value, level)
        elif form == "topk":
            self.ranks.rank(stage, op, value, level)
        else:
            self.map(stage, op, value, level)

    def map(self, stage: Stage, op: Op, value: Value, level: Level) -> None:
        split, dims = self.ub.split(op.out), self.b.tiling.shape(op.out)
        args = [self.operands.operand(stage, op, a, dims, split, level) for a in op.args]
        tail = self.masks.tail_conditions(value)
        early = op.fn == "cast" and isinstance(args[0], str) and self.b.buffers[args[0]].dtype in SELECTED
        if tail and early:
            args[0] = self.masks.cleared(stage, op, str(args[0]), dims, split, level)
        out = self.result(op, value, dims, split, level, args)
        if out.name in args:
            self.ub.forget(out.buffer, op.out)
        self.b.add(level, stage.name, *self.coder.code(op, out, args, split))
        if tail and not early:
            self.b.add(level, stage.name, *self.masks.where(tail, out, [out.name, 0.0], split))
        self.results.finish(stage, op, value, out, split, level)

    def result(self, op: Op, value: Value, dims: tuple[str, ...], split: str, level: Level, args: list[Operand]) -> Tile:
        """Where the result goes: over an operand that dies here, or to another buffer."""
        if op.fn not in ("select", "ge", "lt", "cast", "copy"):
            for a, name in zip(op.args, args, strict=True):
                if isinstance(a, str) and isinstance(name, str) and self.ub.dies(a) and self.reusable(name, a, op, dims, split, level):
                    return self.ub.used(Tile(self.b.buffers[name], dims, split), self.ub.born[name], self.ub.use(op.out))
        self.ub.release_dead(op, level)
        return self.ub.new(value, dims, split, level, use=self.ub.use(op.out))

    def reusable(self, name: str, arg: str, op: Op, dims: tuple[str, ...], split: str, level: Level) -> bool:
        """Whether the result fits over the operand's buffer and nothing else needs that."""
        buffer = self.b.buffers[name]
        value = self.b.tiling.graph.value(op.out)
        fits = buffer.dtype == value.dtype and buffer.shape == tuple(self.b.extent(d, split) for d in dims)
        others = [k for k, t in self.ub.tiles.items() if t.buffer is buffer and k[0] != arg]
        fits &= self.ub.may_serve(name, self.ub.use(op.out))
        if name in self.ub.state_names and level != "epilogue":
            return fits and not others and op.out in self.chain(self.ub.state_names[name])
        done = name in self.ub.state_names or (name not in self.ub.kept and self.ub.born.get(name) == level)
        return fits and done and not others

    def chain(self, value: str) -> set[str]:
        """A value and those before it that only lead to it: what may be worked out in a state's own buffer."""
        found, front = {value}, [value]
        while front:
            _, op = self.b.structure.made[front.pop()]
            single = [r for r in op.reads if r in self.b.structure.made and len(self.b.structure.readers[r]) == 1]
            front += single
            found.update(single)
        return found
