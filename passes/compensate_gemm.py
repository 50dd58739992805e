"""compensate-gemm: what rounding an operand for the Cube loses goes through a second gemm into the same accumulator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

from fusion.graph import Op, Stage, StageGraph, Value
from fusion.graph.types import Operand
from fusion.passes import GraphPass, PassResult
from fusion.passes.options import chosen
from fusion.passes.rebase import rebase
from fusion.plan.types import Plan, Refusal

HALVES = ("float16", "bfloat16")


@dataclass(frozen=True)
class CompensateGemm(GraphPass):
    """For an operand that a Vector stage rounds to fp16 or bf16, a second contraction adds the product with its rounding error.

    Before: ds_cast = cast(ds) as float16               dk = contract(ds_cast, Q)
    After:  ds_cast = cast(ds) as float16               dk_main = contract(ds_cast, Q)
            ds_cast_err = cast(ds - cast(ds_cast))      dk_fix = contract(ds_cast_err, Q)       dk = dk_main + dk_fix, one accumulator
    A Vector stage that casts the rounded value back to float32 adds its error as well.

    Options: `stages` and `values` limit it to some Cube stages (`dk+dq`) or results; `retile` allows smaller tiles to make room in a plan.
    Refuses when: an operand asked for was not rounded by a Vector stage, or (in a plan) the second tile does not fit a memory or the flags.
    Source: x = r(x) + (x - r(x)); the difference is exact in fp32, and its own rounding loses 2^-11 of 2^-11 of x (fp16). In attention
    backward with 4 heads in one group, 131 positions of 64, fp16, the shares of dQ, dK, dV within the tolerance (0.99 is needed) are 0.989,
    0.972, 0.986 without, 0.995, 0.985, 0.986 with retain-in-ub, and 0.999, 0.998, 1.000 with both.
    """

    name: ClassVar[str] = "compensate-gemm"
    stages: str = ""
    values: str = ""
    retile: bool = False

    def apply(self, artefact: StageGraph) -> PassResult[StageGraph]:
        cube = [s for s in artefact.stages if s.unit == "cube"]
        stages = chosen(self.stages, [s.name for s in cube], "Cube stage")
        results = [op.out for s in cube for op in s.body if op.fn == "contract"]
        values = chosen(self.values, results, "contraction")
        writer, refusals = _Writer(artefact), list[Refusal]()
        for stage, op in ((s, o) for s in cube for o in s.body if s.name in stages and o.out in values and o.fn == "contract"):
            rounded = writer.rounded(stage, op)
            if rounded:
                writer.compensate(op, rounded)
            elif (self.stages or self.values) and not any(isinstance(r, str) and writer.is_rounded(r) for r in op.args):
                refusals.append(_unknown(artefact, stage, op))
        after = writer.graph()
        return PassResult(after, after != artefact, tuple(refusals))

    def rebase(self, plan: Plan, graph: StageGraph) -> PassResult[Plan]:
        return rebase(plan, graph, self.retile)


def _unknown(graph: StageGraph, stage: Stage, op: Op) -> Refusal:
    what = ", ".join(f"{r} ({graph.value(r).dtype}, {graph.value(r).role})" for r in op.reads)
    return Refusal("operand-is-rounded", stage.name, f"{op.out}: no Vector stage rounds an operand from float32, operands: {what}")


def _with(op: Op, place: int, operand: str | None) -> tuple[Operand, ...]:
    """The operands with one replaced."""
    return tuple(operand if i == place and operand else a for i, a in enumerate(op.args))


@dataclass
class _Writer:
    """The rewritten parts of a graph: new bodies by stage, new values."""

    source: StageGraph
    after_cast: dict[str, tuple[Op, ...]] = field(default_factory=dict[str, tuple[Op, ...]])  # by rounded value
    for_contract: dict[str, tuple[Op, ...]] = field(default_factory=dict[str, tuple[Op, ...]])  # by contraction
    values: list[Value] = field(default_factory=list[Value])

    def made(self, value: str) -> tuple[Stage, Op] | None:
        stage = self.source.producer(value)
        return next(((s, o) for s in self.source.stages if s.name == stage for o in s.body if o.out == value), None)

    def rounded(self, stage: Stage, op: Op) -> tuple[int, ...]:
        """Places of operands that a Vector stage casts from float32 to a half type, and whose error no contraction of the stage takes."""
        return tuple(i for i, r in enumerate(op.args) if isinstance(r, str) and self.is_rounded(r) and not self.has_fix(stage, op, i))

    def is_rounded(self, value: str) -> bool:
        found = self.made(value)
        if not found or found[0].unit != "vector" or found[1].fn != "cast" or value in self.errors.values():
            return False
        return self.source.value(value).dtype in HALVES and self.source.value(found[1].reads[0]).dtype == "float32"

    def has_fix(self, stage: Stage, op: Op, place: int) -> bool:
        error = self.errors.get(str(op.args[place]))
        return any(o.fn == "contract" and o.over == op.over and o.args == _with(op, place, error) for o in stage.body if error)

    @cached_property
    def errors(self) -> dict[str, str]:
        """Values that are the rounding error of another, by that other: r_err = cast(x - cast(r)), r = cast(x)."""
        made = {op.out: op for s in self.source.stages for op in s.body}
        found: dict[str, str] = {}
        for op in (o for o in made.values() if o.fn == "cast"):
            delta = made.get(str(op.args[0]))
            back = made.get(str(delta.args[1])) if delta and delta.fn == "sub" else None
            first = made.get(str(back.args[0])) if back and back.fn == "cast" else None
            if delta and first and first.fn == "cast" and first.args[0] == delta.args[0]:
                found[first.out] = op.out
        return found

    def name(self, wanted: str) -> str:
        taken = {v.name for v in (*self.source.values, *self.values)}
        return next(n for n in (wanted, *(f"{wanted}_{i}" for i in range(2, len(taken) + 3))) if n not in taken)

    def new(self, wanted: str, like: str, dtype: str) -> str:
        name = self.name(wanted)
        self.values.append(Value(name, self.source.value(like).dims, dtype))
        return name

    def error(self, rounded: str) -> str:
        """The rounding error of a value, rounded itself; made once, right behind the cast."""
        if rounded in self.errors:
            return self.errors[rounded]
        if rounded not in self.after_cast:
            found = self.made(rounded)
            assert found is not None
            exact, dtype = found[1].reads[0], self.source.value(rounded).dtype
            back = self.new(f"{rounded}_back", rounded, "float32")
            delta = self.new(f"{rounded}_delta", rounded, "float32")
            error = self.new(f"{rounded}_err", rounded, dtype)
            self.after_cast[rounded] = (
                Op("cast", back, (rounded,), attr="float32"),
                Op("sub", delta, (exact, back)),
                Op("cast", error, (delta,), attr=dtype),
            )
        return self.after_cast[rounded][-1].out

    def compensate(self, op: Op, places: tuple[int, ...]) -> None:
        """op.out = main + one contraction for each rounded operand, added up in one accumulator."""
        total = self.new(f"{op.out}_main", op.out, "float32")
        ops = [replace(op, out=total)]
        for i in places:
            fix = self.new(f"{op.out}_fix", op.out, "float32")
            added = op.out if i == places[-1] else self.new(f"{op.out}_part", op.out, "float32")
            ops += [replace(op, out=fix, args=_with(op, i, self.error(str(op.args[i])))), Op("add", added, (total, fix))]
            total = added
        self.for_contract[op.out] = tuple(ops)

    def read_back(self, stage: Stage, op: Op) -> tuple[Op, ...]:
        """A Vector stage that takes up a rounded value in float32 adds the error too, for it is there."""
        source = str(op.args[0]) if op.args else ""
        if op.fn != "cast" or op.attr != "float32" or source not in self.after_cast or source in stage.writes:
            return (op,)
        main, fix = self.new(f"{op.out}_main", op.out, "float32"), self.new(f"{op.out}_fix", op.out, "float32")
        error = self.after_cast[source][-1].out
        return (replace(op, out=main), replace(op, out=fix, args=(error,)), Op("add", op.out, (main, fix)))

    def graph(self) -> StageGraph:
        def body(stage: Stage) -> Iterator[Op]:
            for op in stage.body:
                yield from self.for_contract.get(op.out) or self.read_back(stage, op)
                yield from self.after_cast.get(op.out, ())

        stages = tuple([replace(s, body=tuple(body(s))) for s in self.source.stages])
        return self.source.with_stages(stages, (*self.source.values, *self.values))
