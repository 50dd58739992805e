"""`lower`: kernels in, Ascend C out, through the disk cache and the worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, cast

from fusion.errors import FusionError
from fusion.toolchain import cache, daemon, discover, installation, recipe
from fusion.toolchain.exchange import Exchange
from fusion.toolchain.model import ErrorKind, KernelSource, Lowered, LowerError, OnChip, Param, Role, Target, TirPass
from fusion.toolchain.progress import Observer

Json: TypeAlias = "dict[str, object]"
Progress = Callable[[str, int, int], None]

TIMEOUT_SECONDS = 120.0
"""How long one kernel may take for one target."""


def lower(
    kernels: Sequence[KernelSource],
    targets: Sequence[Target] = ("ascendc",),
    *,
    tir_passes: Sequence[TirPass] = (),
    print_after: Sequence[str] = (),
    platform: str = "A2",
    jobs: int | None = None,
    timeout: float = TIMEOUT_SECONDS,
    progress: Progress | None = None,
    observer: Observer | None = None,
) -> list[Lowered]:
    """Lower kernels for the targets with the real compiler; one result a kernel, in the order of `kernels`.

    A kernel that does not lower has an `error` in its result; nothing is raised for it. `print_after` names compiler passes after
    which the TIR is wanted ("*": all). `jobs` limits how many kernels are lowered at once. `progress(text, done, total)` is called as
    jobs start and end. Without a compiler one is installed, told to `observer`; if there can be none, every kernel not in the cache
    has the error "unavailable".
    """
    requests = [_job(kernel, target, tir_passes, print_after, platform) for kernel in kernels for target in targets]
    results = _Batch(requests, progress or _no_progress).run(jobs or daemon.slots(), timeout, observer)
    per = len(targets)
    return [_combine(kernel, targets, results[i * per : i * per + per]) for i, kernel in enumerate(kernels)]


def _no_progress(text: str, done: int, total: int) -> None:
    return None


def _job(kernel: KernelSource, target: Target, passes: Sequence[TirPass], print_after: Sequence[str], platform: str) -> Json:
    """What the worker is asked; also what the cache is keyed by."""
    return {
        "name": kernel.name,
        "source": kernel.source,
        "entry": kernel.entry,
        "args": dict(kernel.args),
        "pass_configs": None if kernel.pass_configs is None else dict(kernel.pass_configs),
        "target": target,
        "platform": platform,
        "tir_passes": [{"name": p.name, "source": p.source, "at": p.at, "options": dict(p.options)} for p in passes],
        "print_after": list(print_after),
    }


class _Batch:
    """The jobs of one call: those in the cache are answered from it, the others go to the worker."""

    def __init__(self, jobs: list[Json], progress: Progress) -> None:
        self.jobs, self.progress = jobs, progress
        self.results: list[Json] = [{} for _ in jobs]
        self.done = 0

    def run(self, limit: int, timeout: float, observer: Observer | None) -> list[Json]:
        found = discover.find()
        keys = [cache.key(job, found.version if found else recipe.VERSION) for job in self.jobs]
        missing: list[int] = []
        for index, name in enumerate(keys):
            stored = cache.get(name)
            if stored is None:
                missing.append(index)
            else:
                self._finish(index, {**stored, "cached": True})
        if missing:
            self._compile(missing, keys, limit, timeout, observer)
        return self.results

    def _compile(self, missing: list[int], keys: list[str], limit: int, timeout: float, observer: Observer | None) -> None:
        def finished(position: int, result: Json) -> None:
            cache.put(keys[missing[position]], result)
            self._finish(missing[position], result)

        def started(position: int) -> None:
            self.progress(f"lowering {self._title(missing[position])}", self.done, len(self.jobs))

        try:
            compiler = installation.ensure(observer)
            self.progress("starting the compiler", self.done, len(self.jobs))
            Exchange(compiler, [self.jobs[i] for i in missing], timeout, limit, started, finished).run()
            cache.prune()
        except FusionError as error:
            unavailable: Json = {"kind": "unavailable", "message": error.what, "pass_name": "", "details": error.remedy}
            for index in missing:
                if not self.results[index]:
                    self._finish(index, {"error": unavailable, "seconds": 0.0})

    def _finish(self, index: int, result: Json) -> None:
        self.results[index] = result
        self.done += 1
        outcome = "failed" if result.get("error") else "cached" if result.get("cached") else "lowered"
        self.progress(f"{outcome} {self._title(index)}", self.done, len(self.jobs))

    def _title(self, index: int) -> str:
        return f"{self.jobs[index]['name']} ({self.jobs[index]['target']})"


def _combine(kernel: KernelSource, targets: Sequence[Target], results: Sequence[Json]) -> Lowered:
    """One kernel's results for all targets; what does not depend on the target is taken from the first that worked."""
    lowered = Lowered(kernel.name, cached=all(bool(result.get("cached")) for result in results))
    for target, result in zip(targets, results, strict=True):
        if result.get("error"):
            lowered = replace(lowered, error=lowered.error or _error(cast("Mapping[str, str]", result["error"]), target))
            continue
        if not lowered.entry:
            lowered = _described(lowered, result)
        source = str(result["source"])
        lowered = replace(lowered, ascendc=source) if target == "ascendc" else replace(lowered, pto=source)
    seconds = sum(float(cast(float, result["seconds"])) for result in results)
    return replace(lowered, seconds=seconds, log="".join(str(result.get("log", "")) for result in results))


def _error(error: Mapping[str, str], target: Target) -> LowerError:
    kind = cast(ErrorKind, error["kind"])
    return LowerError(kind, error["message"], error["pass_name"], error["details"], target)


def _described(lowered: Lowered, result: Json) -> Lowered:
    places = cast("list[dict[str, object]]", result["on_chip"])
    threads = result["threads"]
    return replace(
        lowered,
        tir=str(result["tir"]),
        entry=str(result["entry"]),
        params=tuple(_param(item) for item in cast("list[dict[str, object]]", result["params"])),
        blocks=cast("int | str", result["blocks"]),
        threads=threads if isinstance(threads, int) else None,
        task_type=str(result["task_type"]),
        on_chip=tuple(OnChip(str(p["name"]), str(p["scope"]), int(str(p["address"])), int(str(p["bytes"]))) for p in places),
        findings=tuple(cast("list[dict[str, object]]", result["findings"])),
        dumps=tuple((name, text) for name, text in cast("list[tuple[str, str]]", result["dumps"])),
    )


def _param(item: Mapping[str, object]) -> Param:
    shape = tuple(cast("list[int | str]", item["shape"]))
    return Param(str(item["name"]), str(item["dtype"]), shape, cast(Role, item["role"]))
