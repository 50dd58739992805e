"""Rules about the order of work: what must be complete before it is read, which blocks and loops it may belong to, what may cross units."""

from __future__ import annotations

from collections.abc import Iterator

from fusion.plan.structure import Structure


def exists_after(s: Structure) -> Iterator[tuple[str, str]]:
    """A stage whose input exists only once an output has reached the host cannot share that output's kernel."""
    for source, reader, output in s.graph.host_edges():
        if source in s.stages and reader in s.stages:
            inputs = [v.name for v in s.graph.inputs if output in v.after and v.name in s.graph.stage_reads(reader)]
            yield reader, f"{', '.join(inputs)} exists only after {output}, which stage {source} of the same kernel makes"


def phases_share_outputs(s: Structure) -> Iterator[tuple[str, str]]:
    """A launch that the caller waits for leaves outputs behind, not intermediates for a later phase."""
    early = s.graph.before_host
    if not early.intersection(s.stages):
        return
    for out in s.stored:
        readers = [r for r in s.graph.readers(out) if r not in s.stages and r not in early]
        if readers and s.graph.value(out).role == "intermediate":
            yield s.made[out][0].name, f"{out} would have to be kept from this launch until the one of stage {readers[0]}, in a later phase"


def scans_stay_whole(s: Structure) -> Iterator[tuple[str, str]]:
    """The stages of a scan pass states to each other in every step."""
    for group in s.graph.scan_groups():
        missing = [n for n in group if n not in s.stages]
        if missing and len(missing) < len(group):
            yield missing[0], f"steps together with {', '.join(n for n in group if n in s.stages)} along {s.graph.stage(missing[0]).scan}"


def scan_is_the_loop(s: Structure) -> Iterator[tuple[str, str]]:
    """The steps of a scan follow each other in one block, with no other loop around."""
    for name in s.stages:
        scan = s.graph.stage(name).scan
        if scan and scan in s.grid:
            yield name, f"steps along {scan} follow each other, so {scan} cannot be spread over blocks"
        elif scan and s.loops and s.loops != (scan,):
            yield name, f"a scan along {scan} must be the kernel's only loop, it has {' '.join(s.loops)}"


def grid_sum_is_final(s: Structure) -> Iterator[tuple[str, str]]:
    """A reduction across blocks is complete only when the launch has ended."""
    for out, (stage, op) in s.made.items():
        dims = s.crosses_grid(op)
        readers = [r for r, o in s.readers.get(out, ()) if s.accumulator.get(out) != o.out]
        if dims and readers:
            yield (
                readers[0].name,
                f"{out} of stage {stage.name} is summed across blocks over {' '.join(sorted(dims))}, and read in the kernel",
            )


def only_sums_cross_blocks(s: Structure) -> Iterator[tuple[str, str]]:
    """Blocks combine results by adding in GM; there is no atomic maximum for them."""
    for out, (stage, op) in s.made.items():
        if s.crosses_grid(op) and op.fn not in ("sum", "contract", "add"):
            yield stage.name, f"{out} = {op.fn} over {' '.join(sorted(s.crosses_grid(op)))} would have to be combined across blocks"


def loop_sum_is_final(s: Structure) -> Iterator[tuple[str, str]]:
    """What a loop adds up is complete only when the loop has ended."""
    if not s.loops:
        return
    for out, (stage, op) in s.made.items():
        late = s.accumulates(stage, op) or out in s.nexts or s.levels[out] == "epilogue"
        for reader, o in s.readers.get(out, ()):
            inside = s.levels[o.out] == "body" and s.accumulator.get(out) != o.out
            if late and inside and not (out in s.nexts and reader.scan == stage.scan and reader.scan):
                yield (
                    reader.name,
                    f"{out} of stage {stage.name} is complete only after the loop over {' '.join(s.loops)}, and read inside it",
                )


def body_values_stay_in_body(s: Structure) -> Iterator[tuple[str, str]]:
    """A tile made in an iteration is gone after the loop, unless it was added up or carried."""
    for out, level in s.levels.items() if s.loops else ():
        for reader, o in s.readers.get(out, ()):
            if level == "body" and s.levels[o.out] == "epilogue" and not s.complete_after_loop(out) and s.accumulator.get(out) != o.out:
                yield reader.name, f"{out} of stage {s.made[out][0].name} holds one iteration of the loop over {' '.join(s.loops)}"


def sums_run_all_loops(s: Structure) -> Iterator[tuple[str, str]]:
    """Work that leaves the iteration must belong to every loop, or it would be added or stored again and again."""
    stored, loops = set(s.stored), set(s.loops)
    for out, (stage, op) in s.made.items() if loops else ():
        mine = set(s.op_loops(stage, op))
        for part in s.parts(stage, op):
            mine |= set(s.op_loops(stage, part))
        adds = s.accumulates(stage, op)
        if adds and (set(adds) != loops or (s.crosses_grid(op) and mine != loops)):
            yield stage.name, f"{out} is added up over {' '.join(sorted(adds))} only, but the kernel loops over {' '.join(s.loops)}"
        elif s.levels[out] == "body" and mine != loops and (s.crosses_grid(op) or (out in stored and not s.complete_after_loop(out))):
            yield stage.name, f"{out} does not change with {' '.join(sorted(loops - mine))}, over which the kernel loops"


def one_block_stores(s: Structure) -> Iterator[tuple[str, str]]:
    """What goes to GM belongs to one block only."""
    for out in s.stored:
        stage, op = s.made[out]
        dims = {d for p in s.parts(stage, op) for d in s.graph.op_dims(p)} | set(s.graph.op_dims(op))
        missing = [d for d in s.grid if d not in dims]
        if missing:
            yield stage.name, f"{out} would be stored by every block along {' '.join(missing)}"


def no_cube_to_cube(s: Structure) -> Iterator[tuple[str, str]]:
    """L0C cannot feed a contraction; through GM there is no flag between two Cube stages."""
    for out, (stage, _) in s.made.items():
        for reader, o in s.readers.get(out, ()):
            if s.unit(out) == "cube" and reader.unit == "cube" and s.accumulator.get(out) != s.accumulator.get(o.out):
                yield reader.name, f"{out} comes from Cube stage {stage.name}; put a Vector stage (a cast) between, or a kernel boundary"


def one_crossing_each(s: Structure) -> Iterator[tuple[str, str]]:
    """A value goes from one unit to the other once: in every step of a scan, or after it."""
    for out in s.nexts if s.loops else ():
        stage, _ = s.made[out]
        readers = [r for r, o in s.readers.get(out, ()) if r.unit != s.unit(out) and o.out not in s.absorbed]
        after = [r for r in readers if r.scan != stage.scan]
        if after and s.crosses_in_step(out):
            why = f"{out} of stage {stage.name} crosses units in every step along {stage.scan} already; copy it for the stage after"
            yield after[0].name, why
