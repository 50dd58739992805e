"""Which plans are compared: the planner's for each count, a plan file, or the published variants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fusion import words
from fusion.compare.published import FOLDER, Variant, published
from fusion.compare.rerank import Prepare, rerank
from fusion.compare.rows import Entry, judged
from fusion.device import Device
from fusion.emit.emit import emit
from fusion.errors import FusionError
from fusion.graph import StageGraph
from fusion.output.summary import plan_us, summarize
from fusion.plan.planner import Planned, Planner
from fusion.plan.text import from_text
from fusion.plan.types import Plan
from fusion.timeline.floor import floor

Progress = Callable[[str, int, int], None]
TARGETS = (9, 6, 5, 4, 3, 2)


def upstream_plans(graph: StageGraph, device: Device) -> list[tuple[str, Plan]]:
    """The published variants of the operator as plans. Raises FusionError if there are none."""
    names = sorted((p.name for p in FOLDER.iterdir() if p.name.startswith(f"{graph.name}-") and p.name.endswith(".plan")), key=_count)
    if not names:
        raise FusionError(f"no published plans of {graph.name}", where="--plans upstream", remedy="leave out --plans, or give plan files")
    read = ((n, (FOLDER / n).read_text(encoding="utf-8")) for n in reversed(names))
    return [(f"upstream {_count(n)}", from_text(text, graph, n, device.limits())) for n, text in read]


def _count(name: str) -> int:
    digits = name.removesuffix(".plan").rpartition("-")[2]
    return int(digits) if digits.isdigit() else 0


def plan_files(graph: StageGraph, paths: Sequence[str], device: Device) -> list[tuple[str, Plan]]:
    found = list[tuple[str, Plan]]()
    for path in paths:
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise FusionError(
                f"--plans {path}: {getattr(error, 'strerror', None) or 'no text file'}", remedy="give plan files, or upstream"
            ) from error
        found.append((Path(path).stem, from_text(text, graph, path, device.limits())))
    return found


def compare_plans(
    named: Sequence[tuple[str, Plan]], graph: StageGraph, device: Device, prepare: Prepare, fast: bool, progress: Progress
) -> list[Entry]:
    """Entries for given plans, in their order."""
    entries, known = list[Entry](), published(graph.name)
    if known and not known.is_shape_of(graph):
        known = None
    for number, (name, plan) in enumerate(named):
        progress(name, number, len(named))
        entry = _entry(name, [Planned(plan, plan_us(plan), (), 0.0)], graph, device, prepare, fast)
        if name.startswith("upstream ") and known:
            entry = _with_measured(entry, known.variants.get(entry.kernels), device)
        entries.append(entry)
    return judged(entries)


def _with_measured(entry: Entry, variant: Variant | None, device: Device) -> Entry:
    if variant is None:
        return entry
    modelled = variant.predicted_us(device)
    return replace(entry, measured_us=variant.us, handwritten_us=modelled, predicted_us=modelled)


def compare_targets(
    graph: StageGraph, targets: Sequence[int], device: Device, prepare: Prepare, fast: bool, keep: int, progress: Progress
) -> list[Entry]:
    """Entries for the planner's plans: for each count the `keep` best by estimate are simulated and the fastest is taken."""
    planner = Planner(graph, device.limits(), device.name)
    found: Mapping[int, list[Planned]] = planner.possible(tuple(targets), 1 if fast else keep)
    entries = list[Entry]()
    for number, target in enumerate(targets):
        progress(words.count(target, "kernel"), number, len(targets))
        if not found.get(target):
            least = floor(graph, device).us
            entries.append(
                Entry(
                    words.count(target, "kernel"),
                    target,
                    None,
                    None,
                    device.interval_of(graph.name),
                    least,
                    error=planner.impossible(target).what,
                )
            )
            continue
        entries.append(_entry(words.count(target, "kernel"), found[target], graph, device, prepare, fast))
    return judged(entries)


def _entry(name: str, planned: Sequence[Planned], graph: StageGraph, device: Device, prepare: Prepare, fast: bool) -> Entry:
    least, interval = floor(graph, device).us, device.interval_of(graph.name)
    if fast:
        program = emit(prepare(planned[0].plan), device.limits())
        summary = summarize(program, device.limits(), {})
        return Entry(name, len(program.kernels), summary.total_us, summary.total_us, summary.interval, least, program, summary)
    try:
        best = rerank(planned, device, prepare)[0]
    except FusionError as error:
        return Entry(name, len(planned[0].plan.kernels), None, planned[0].us, interval, least, error=error.what)
    summary = summarize(best.program, device.limits(), {})
    return Entry(name, len(best.program.kernels), best.time.us, best.estimated_us, interval, least, best.program, summary, best.time)
