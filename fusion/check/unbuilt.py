"""Why there is nothing to judge: files without a kernel, kernels that cannot be built, and names that no file has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from fusion.check.inspection import Factory, Inspection, Instance, Stopped
from fusion.check.report import Finding, Report, unjudged
from fusion.errors import FusionError, did_you_mean
from fusion.words import count

STOPPED = {
    "syntax": ("syntax-error", "not Python: ", "correct the line"),
    "time": (
        "import-timeout",
        "executing the file does not end: ",
        "put what is not a kernel under `if __name__ == '__main__'`, or end it",
    ),
    "memory": ("import-memory", "executing the file: ", "do not allocate at import; only the kernels are needed"),
    "exception": (
        "import-error",
        "executing the file fails: ",
        "correct it, or put what is not a kernel under `if __name__ == '__main__'`",
    ),
}
HINTS: tuple[tuple[str, str], ...] = (
    ("cannot unpack non-iterable Var", "T.Kernel with threads=1 gives one index: `as cid`; with threads=2 it gives two: `as (cid, vid)`"),
    ("two shapes must be the same", "a copy between Cube and Vector memories moves a whole tile: give both sides the same shape"),
    ("unknown type", "a dtype is float16, bfloat16, float, or int and uint of 8, 16, 32 or 64 bits"),
    ("Unresolved call", "write one operation in each T.Parallel, or use the T.tile operation on the whole tile"),
    ("Mismatch in sync points", "write each workspace as often as it is read, and use one fragment for each handoff"),
    (r"expected 2, got 1.*AscendInferBufferScope", "give the buffers two dims: (1, N) instead of (N,)"),
    (
        r"indexing 0 on an array of size 0.*CombineCV",
        "T.Persistent and T.sync_all do not survive the split of Cube and Vector: use T.serial over the tasks, or switch combining off",
    ),
    ("AscendMemoryPlanning", "smaller or fewer tiles: a memory may be too small for them"),
)
"""What helps against messages of the compiler, by a part of the message and the pass that it comes from."""


def hint(message: str, otherwise: str) -> str:
    """The remedy for a message of the compiler."""
    return next((remedy for pattern, remedy in HINTS if re.search(pattern, message)), otherwise)


# ---- names on the command line


def check_names(found: Sequence[Inspection], kernel: str, args: Mapping[str, object]) -> None:
    """Raises FusionError for a kernel or a parameter that no file has; says nothing if some file could not be read."""
    if any(inspection.stopped for inspection in found):
        return
    made = [instance.factory for inspection in found for instance in inspection.instances]
    factories = [factory for inspection in found for factory in inspection.factories]
    if kernel and kernel not in made:
        known = sorted({*made, *(factory.name for factory in factories)})
        raise FusionError(f"--kernel {kernel}: no kernel of this name", remedy=did_you_mean(kernel, known))
    chosen = [factory for factory in factories if kernel in ("", factory.name)]
    parameters = sorted({name for factory in chosen for name in (*factory.required, *factory.optional)})
    for name in args:
        if name not in parameters:
            raise FusionError(f"--args {name}: no factory has a parameter {name!r}", remedy=did_you_mean(name, parameters))


def without_kernel(path: Path, found: Inspection, kernel: str) -> list[Report]:
    """Why there is nothing to check in a file; nothing if the kernel asked for is in another one."""
    if found.stopped and not found.instances:
        return [_stopped(path, found.stopped)]
    if found.instances or kernel:
        return []
    return [unjudged(path, "", "no-kernel", 1, "no kernel in this file", "a kernel is a function with @tilelang.jit or @T.prim_func")]


def _stopped(path: Path, stopped: Stopped) -> Report:
    rule, head, remedy = STOPPED.get(stopped.kind, STOPPED["exception"])
    return unjudged(path, "", rule, stopped.line, head + stopped.message, remedy)


def skipped(found: Inspection, kernel: str) -> str:
    """A note on the kernels of one factory that were not looked at, "" if all were."""
    number = found.skipped.get(kernel, 0)
    return f"{count(number, 'more kernel')} of {kernel} with other arguments not checked; --args picks one" if number else ""


# ---- kernels that cannot be built


def unbuilt(path: Path, found: Inspection, given: Mapping[str, object]) -> Iterator[Report]:
    """A report on every kernel that could not be built. `given` are the arguments of the command line."""
    factories = {factory.name: factory for factory in found.factories}
    for instance in found.instances:
        if instance.problem is not None:
            odd = odd_arguments(found, instance, given)
            yield _report(path, instance, factories.get(instance.factory), given, odd)
        elif instance.program is None:
            message = f"its TIR has a node that is not read here: {instance.unread}"
            yield unjudged(path, instance.factory, "not-read", instance.line, message, "report it")


def _report(path: Path, instance: Instance, factory: Factory | None, given: Mapping[str, object], odd: Sequence[str]) -> Report:
    problem = instance.problem
    assert problem is not None
    if problem.kind == "arguments":
        example = " ".join(f"{name}=..." for name in factory.required) if factory else "NAME=VALUE"
        said = f"{instance.factory} {problem.message}"
        return unjudged(path, instance.factory, "missing-arguments", problem.line, said, f"give it with --args {example}")
    if odd:
        return wrong_argument(path, instance.factory, problem.line, odd, problem.message)
    own = {name: value for name, value in given.items() if name in instance.args}
    why = f"built with --args {' '.join(f'{name}={value}' for name, value in own.items())}" if own else ""
    finding = Finding("frontend", problem.line, problem.message, hint(problem.message, "correct the statement"), why, verdict="refused")
    return Report(path, instance.factory, "refused", (finding,), args=arguments_of(instance))


def wrong_argument(path: Path, kernel: str, line: int, odd: Sequence[str], message: str) -> Report:
    """A report on a kernel that cannot be built, or compiled, with an argument of the command line."""
    said = f"{'; '.join(odd)}; with it: {message}"
    return unjudged(path, kernel, "wrong-argument", line, said, "give --args a value of the type that the default has")


def odd_arguments(found: Inspection, instance: Instance, given: Mapping[str, object]) -> tuple[str, ...]:
    """Arguments of the command line that have another type than the default that they replace."""
    defaults = next((f.defaults for f in found.factories if f.name == instance.factory), {})
    pairs = [(name, value, defaults[name]) for name, value in given.items() if defaults.get(name) is not None]
    return tuple(f"{name}={value!r} is {_kind(value)}, its default {d!r} is {_kind(d)}" for name, value, d in pairs if not _alike(value, d))


def _alike(value: object, default: object) -> bool:
    if isinstance(default, float) and type(value) is int:
        return True
    return isinstance(value, tuple | list) if isinstance(default, tuple | list) else type(value) is type(default)


KINDS: Mapping[str, str] = {
    "bool": "True or False",
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "tuple": "a tuple",
    "list": "a tuple",
}


def _kind(value: object) -> str:
    name = type(value).__name__
    return KINDS.get(name, name)


def arguments_of(instance: Instance) -> str:
    """The factory's arguments as they stand behind a kernel's name."""
    return ", ".join(f"{name}={value}" for name, value in instance.args.items())


def open_names(names: Iterable[Iterable[str]], given: Iterable[str]) -> None:
    """Raises FusionError for a size that no kernel leaves open."""
    known = sorted({name for kernel in names for name in kernel})
    for name in given:
        if name not in known:
            remedy = did_you_mean(name, known) if known else "no kernel has an open size; factories take --args"
            raise FusionError(f"--shape {name}: no open size {name!r}", remedy=remedy)
