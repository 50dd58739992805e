"""Kernels of a user's own as what a measured launch was: `path/to/kernel.py`, or `path/to/kernel.py:NAME` where the file has several."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from fusion.check.inspection import Inspection, Instance, Request, inspect_files
from fusion.errors import FusionError
from fusion.timeline.record import Outline, buffers_of
from fusion.timeline.store import recorded
from fusion.toolchain import lower
from fusion.words import count

OF_OPERATOR = re.compile(r'^"""\w+: .* of (\w+)\."""$', re.MULTILINE)


def is_own(label: str) -> bool:
    """Whether the label names a file."""
    return label.partition(".py")[1] != "" and label.partition(".py")[2][:1] in ("", ":")


def operator_of(label: str) -> str:
    """The operator that a kernel file is of: emitted ones say it in their first line, else the file's own name."""
    path = Path(f"{label.partition('.py')[0]}.py")
    said = OF_OPERATOR.search(path.read_text(encoding="utf-8"))
    return said[1] if said else path.stem


@lru_cache(maxsize=64)
def outline_of(label: str) -> Outline:
    """The instruction streams of the kernel as its file makes it, with the arguments that the file itself gives it (needs the compiler).

    Raises FusionError if the file cannot be read, makes no kernel or several, or the compiler refuses it.
    """
    stem, _, kernel = label.partition(".py")
    path, kernel = Path(f"{stem}.py"), kernel.removeprefix(":")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "no text file"
        raise FusionError(f"cannot be read: {why}", where=label, remedy="a launch is a known label or a TileLang file") from error
    found = dict[int, Inspection]()
    inspect_files([Request(path, text, kernel)], found.__setitem__)
    instance = _only(found[0], label)
    (lowered,) = lower([instance.kernel_source()])
    if lowered.error or not lowered.ascendc:
        raise FusionError(lowered.error.message if lowered.error else "not lowered to Ascend C", where=label)
    open_sizes = sorted({str(n) for p in lowered.params for n in p.shape if not str(n).isdigit()})
    if open_sizes:
        raise FusionError(
            f"open sizes: {', '.join(open_sizes)}", where=label, remedy="give a file that makes the kernel at the measured sizes"
        )
    return recorded(lowered.ascendc, lowered.entry or instance.factory, buffers_of(lowered))


def _only(found: Inspection, label: str) -> Instance:
    if found.stopped:
        raise FusionError(f"the file does not run: {found.stopped.message}", where=label)
    built = [i for i in found.instances if i.program is not None]
    if not built:
        problem = next((i.problem.message for i in found.instances if i.problem), "no kernel in the file")
        raise FusionError(problem, where=label, remedy="let the file call its factory with the arguments that were measured")
    if len(built) > 1:
        names = sorted({i.factory for i in built})
        remedy = (
            f"write {label.partition('.py')[0]}.py:NAME" if len(names) > 1 else "give a file that makes only the kernel that was measured"
        )
        raise FusionError(f"the file makes {count(len(built), 'kernel')}: {', '.join(names)}", where=label, remedy=remedy)
    return built[0]
