"""Asking the compiler's worker what kernels a file makes: see `fusion/toolchain/worker/inspector` for how it finds out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, cast

from fusion.check.program import Program, parse
from fusion.toolchain import KernelSource, daemon, ensure
from fusion.toolchain.exchange import Exchange

Json: TypeAlias = "dict[str, object]"

DEVELOPER_MODE = {
    "tl.ascend_auto_cv_combine": True,
    "tl.ascend_auto_cross_core_sync": True,
    "tl.ascend_auto_sync": True,
    "tl.ascend_memory_planning": True,
}
"""What a prim_func is lowered with that no `@tilelang.jit` has configured."""
FILE_SECONDS = 20.0
"""How long a file's own code may run."""
HARD_SECONDS = 60.0
MEMORY = 2 << 30
"""How many bytes of memory a file may use."""


@dataclass(frozen=True)
class Stopped:
    """Why the file's own code did not run to its end: kind is syntax, time, memory or exception."""

    kind: str
    message: str
    line: int = 0


@dataclass(frozen=True)
class Factory:
    """A `@tilelang.jit` function of the file; `required` are its parameters without default, `defaults` the values of the others."""

    name: str
    line: int
    required: tuple[str, ...]
    defaults: Mapping[str, object]

    @property
    def optional(self) -> tuple[str, ...]:
        return tuple(self.defaults)


@dataclass(frozen=True)
class Problem:
    """Why one kernel could not be built; kind "arguments": a value is missing or unknown."""

    message: str
    line: int
    kind: str = "frontend"


@dataclass(frozen=True)
class Instance:
    """One kernel that the file makes: of which factory, with which arguments, called at which line. `tir` is its saved prim_func."""

    factory: str
    args: Mapping[str, object]
    line: int
    configs: Mapping[str, bool] | None
    out_idx: tuple[int, ...]
    workspace_idx: tuple[int, ...]
    program: Program | None
    tir: str
    problem: Problem | None = None
    unread: str = ""

    @property
    def pass_configs(self) -> Mapping[str, bool]:
        return DEVELOPER_MODE if self.configs is None else self.configs

    def kernel_source(self) -> KernelSource:
        """The prim_func as the file made it: saved, so that the file is not executed again."""
        text = f"import tvm\n\nkernel = tvm.ir.load_json({self.tir!r})\n"
        return KernelSource(self.factory, text, "kernel", pass_configs=self.pass_configs)


@dataclass(frozen=True)
class Request:
    """What to look for in a file: one kernel by name, or all, with arguments for the factories."""

    path: Path
    text: str
    kernel: str = ""
    args: Mapping[str, object] = field(default_factory=lambda: dict[str, object]())


@dataclass(frozen=True)
class Inspection:
    """What a file makes; `skipped` counts the kernels of each factory that were too many to look at."""

    stopped: Stopped | None
    factories: tuple[Factory, ...]
    instances: tuple[Instance, ...]
    skipped: Mapping[str, int] = field(default_factory=lambda: dict[str, int]())


def inspect_files(requests: Sequence[Request], done: Callable[[int, Inspection], None]) -> None:
    """Inspect files in the worker, as many at once as it has slots; `done(index, inspection)` is called as they end. Raises FusionError."""
    jobs: list[Json] = []
    for request in requests:
        inspect: Json = {"path": str(request.path.resolve()), "text": request.text, "seconds": FILE_SECONDS}
        inspect["request"] = {"kernel": request.kernel, "args": dict(request.args)}
        jobs.append({"name": request.path.stem, "inspect": inspect, "memory": MEMORY})
    compiler = ensure()
    Exchange(compiler, jobs, HARD_SECONDS, daemon.slots(), lambda _: None, lambda i, result: done(i, read(result))).run()


def read(result: Json) -> Inspection:
    """An inspection from the worker's answer."""
    if result.get("error"):
        error = cast("Mapping[str, str]", result["error"])
        kind = {"timeout": "time", "memory": "memory"}.get(error["kind"], "exception")
        return Inspection(Stopped(kind, error["message"].replace("the compiler", "the file")), (), ())
    stopped = cast("Mapping[str, object] | None", result["stopped"])
    reason = Stopped(str(stopped["kind"]), str(stopped["message"]), int(str(stopped["line"]))) if stopped else None
    factories = tuple(_factory(item) for item in cast("list[Json]", result["factories"]))
    instances = tuple(_instance(item) for item in cast("list[Json]", result["instances"]))
    return Inspection(reason, factories, instances, cast("Mapping[str, int]", result.get("skipped", {})))


def _factory(item: Json) -> Factory:
    params = cast("list[Mapping[str, object]]", item["params"])
    required = tuple(str(p["name"]) for p in params if p["required"])
    defaults = {str(p["name"]): p["default"] for p in params if not p["required"]}
    return Factory(str(item["name"]), int(str(item["line"])), required, defaults)


def _indices(value: object) -> tuple[int, ...]:
    if value is None:
        return ()
    return tuple(int(str(i)) for i in cast("list[object]", value)) if isinstance(value, list) else (int(str(value)),)


def _instance(item: Json) -> Instance:
    error = cast("Mapping[str, object] | None", item.get("error"))
    problem = Problem(str(error["message"]), int(str(error["line"])), str(error.get("kind", "frontend"))) if error else None
    configs = cast("Mapping[str, object] | None", item["configs"])
    program = cast("Json | None", item["program"])
    return Instance(
        str(item["factory"]),
        cast("Mapping[str, object]", item["args"]),
        int(str(item["line"])),
        None if configs is None else {key: bool(value) for key, value in configs.items()},
        _indices(item["out_idx"]),
        _indices(item["workspace_idx"]),
        parse(program) if program else None,
        str(item["tir"]),
        problem,
        str(item.get("unread", "")),
    )
