"""Which plans are compared: the planner's for each count, a plan file, or the published variants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from fusion import words
from fusion.calibrate import measured
from fusion.compare.rerank import Prepare, rerank
from fusion.compare.rows import Entry, judged
from fusion.device import Device
from fusion.emit.emit import emit
from fusion.errors import FusionError
from fusion.graph import StageGraph
from fusion.output.summary import plan_us, summarize
from fusion.plan.masks import conditions
from fusion.plan.planner import Planned, Planner
from fusion.plan.text import from_text
from fusion.plan.types import Plan
from fusion.timeline.floor import floor
from fusion.timeline.launch import time_launch

Progress = Callable[[str, int, int], None]
TARGETS = (9, 6, 5, 4, 3, 2)
PUBLISHED = {9: 6152.0, 6: 5020.0, 5: 5832.0, 4: 5556.0, 2: 5127.0}
MEASURED_SHAPE = {"b": 1, "n": 8, "g": 8, "q": 4096, "k": 4096, "d": 128}
MEASURED_WINDOW = 128


def upstream_plans(graph: StageGraph, device: Device) -> list[tuple[str, Plan]]:
    """The published variants of the operator as plans. Raises FusionError if there are none."""
    folder = files("kernels") / "plans"
    names = sorted((p.name for p in folder.iterdir() if p.name.startswith(f"{graph.name}-") and p.name.endswith(".plan")), key=_count)
    if not names:
        raise FusionError(f"no published plans of {graph.name}", where="--plans upstream", remedy="leave out --plans, or give plan files")
    read = ((n, (folder / n).read_text(encoding="utf-8")) for n in reversed(names))
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


def is_measured(graph: StageGraph) -> bool:
    """Whether the graph is the one whose published latencies are known."""
    sizes = {d.name: d.size for d in graph.dims}
    if graph.name != "gqa_sink_bwd" or sizes != MEASURED_SHAPE or any(v.dtype == "bfloat16" for v in graph.values):
        return False
    return any(a.const == MEASURED_WINDOW - 1 for a in conditions(graph))  # q - k < window as k - q + window - 1 >= 0


def handwritten(kernels: int, device: Device) -> float:
    """Predicted microseconds of the published hand-written kernels with that count."""
    rows = {r.label.split(" ")[0]: r for r in measured.rows() if "bwd" in r.label}
    launches = (
        rows[str(kernels)].launches
        if str(kernels) in rows
        else tuple(measured.kernel(k) for k in measured.labels() if k.startswith(f"{kernels}/"))
    )
    return sum(time_launch(o, device).us for o in launches)


def compare_plans(
    named: Sequence[tuple[str, Plan]], graph: StageGraph, device: Device, prepare: Prepare, fast: bool, progress: Progress
) -> list[Entry]:
    """Entries for given plans, in their order."""
    entries, known = list[Entry](), is_measured(graph)
    for number, (name, plan) in enumerate(named):
        progress(name, number, len(named))
        entry = _entry(name, [Planned(plan, plan_us(plan), (), 0.0)], graph, device, prepare, fast)
        if name.startswith("upstream ") and known:
            entry = _with_measured(entry, _count(f"-{name.split(' ')[1]}"), device)
        entries.append(entry)
    return judged(entries)


def _with_measured(entry: Entry, count: int, device: Device) -> Entry:
    from dataclasses import replace

    if count not in PUBLISHED:
        return entry
    modelled = handwritten(count, device)
    return replace(entry, measured_us=PUBLISHED[count], handwritten_us=modelled, predicted_us=modelled)


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
                Entry(words.count(target, "kernel"), target, None, None, device.interval, least, error=planner.impossible(target).what)
            )
            continue
        entries.append(_entry(words.count(target, "kernel"), found[target], graph, device, prepare, fast))
    return judged(entries)


def _entry(name: str, planned: Sequence[Planned], graph: StageGraph, device: Device, prepare: Prepare, fast: bool) -> Entry:
    least = floor(graph, device).us
    if fast:
        program = emit(prepare(planned[0].plan), device.limits())
        summary = summarize(program, device.limits(), {})
        return Entry(name, len(program.kernels), planned[0].us, planned[0].us, device.interval, least, program, summary)
    try:
        best = rerank(planned, device, prepare)[0]
    except FusionError as error:
        return Entry(name, len(planned[0].plan.kernels), None, planned[0].us, device.interval, least, error=error.what)
    summary = summarize(best.program, device.limits(), {})
    return Entry(name, len(best.program.kernels), best.time.us, best.estimated_us, device.interval, least, best.program, summary, best.time)
