# pyright: basic
"""A compiler's exception as one line that says what went wrong, and the rest as details."""

from __future__ import annotations

import re

FRONTEND_STEPS = ("frontend",)
DETAIL_LIMIT = 8000
"""Characters of details that are kept; the end of a traceback says most."""

_FRAME = re.compile(r"^\s*(\d+: |at |File \"|Stack trace|\[bt\]|Traceback)")
_PREFIX = re.compile(r"^(?:[\w.]+\.)?(?:TVMError|InternalError|DiagnosticError): ")
_CHECK = re.compile(r"^Check failed: ")


_CALL = re.compile(r"^In function .*?: error while converting argument \d+: \[[\d:]+\] \S+: (?:InternalError: )?")
_LINE = re.compile(r"^line \d+: ")
_SHAPES = re.compile(r"StructuralEqual check failed.*?:\s*(\[[^\]]*\])\s*and rhs at[^:]*:\s*(\[[^\]]*\])", re.DOTALL)


def first_line(text: str) -> str:
    """The first line of an error that is no stack frame, without the name of tvm's exception class; after `line N: ` as it stands."""
    line = _LINE.match(text)
    if line:
        return line[0] + first_line(text[line.end() :])
    shapes = _SHAPES.search(text)
    if shapes:
        return f"two shapes must be the same, they are {shapes[1]} and {shapes[2]}"
    marked = [line.strip() for line in text.splitlines() if _PREFIX.match(line.strip())]
    meaningful = [_PREFIX.sub("", line) for line in marked]
    plain = [line.strip() for line in text.splitlines() if line.strip() and not _FRAME.match(line)]
    for line in [line for line in meaningful if line] + plain:
        if not line.startswith(("Traceback", "----")):
            return _CHECK.sub("check failed: ", _CALL.sub("", line))
    return text.strip().splitlines()[0] if text.strip() else "no message"


def without_frames(text: str) -> str:
    """`text` without the C++ stack frames, its last DETAIL_LIMIT characters."""
    kept = [line for line in text.splitlines() if not re.match(r"^\s+\d+: ", line)]
    return "\n".join(kept)[-DETAIL_LIMIT:]


def _where(trace: str) -> str:
    lines = re.findall(r'File "[^"]*/kernel\.py", line (\d+)', trace)
    return f"line {lines[-1]}: " if lines else ""


def from_exception(error: BaseException, step: str, trace: str) -> dict:
    """The error part of a result: kind "frontend" while the kernel's own Python ran, else "fatal"."""
    kind = "frontend" if step in FRONTEND_STEPS else "fatal"
    message = first_line(str(error)) if str(error).strip() else type(error).__name__
    if isinstance(error, SystemExit):
        message = f"the module leaves Python (exit status {error.code})"
    if kind == "frontend" and not message.startswith("line "):
        message = _where(trace) + message
    return {"kind": kind, "message": message, "pass_name": step, "details": without_frames(trace)}
