# pyright: basic, reportMissingImports=false
"""One inspection, in a process of its own: execute a file under limits, build the kernels it makes, write what was found."""

from __future__ import annotations

import json
import linecache
import os
import resource
import signal
import sys
import traceback
import types
from pathlib import Path

from .. import errors
from . import fakes, record
from .lines import Lines

RESULT = "result.json"
FILE_BYTES = 256 << 20
"""The most that the file may print or write."""


class TimeUp(BaseException):
    """The file ran longer than it may; not an Exception, so that the file's own handlers let it pass."""


def _module(path: str, text: str) -> types.ModuleType:
    """The `__main__` module that the file is executed as; its text is what `inspect` will find."""
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    sys.path.insert(0, str(Path(path).parent))
    sys.argv = [path]
    return module


def _limits(seconds: float) -> None:
    def stop(_number, _frame):
        raise TimeUp

    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)


def _place(trace: str, path: str) -> int:
    """The last line of the user's file in a traceback, 0 if it is not in it."""
    at = 0
    for line in trace.splitlines():
        if f'File "{path}", line ' in line:
            at = int(line.split(", line ")[1].split(",")[0])
    return at


def _stopped(kind: str, message: str, line: int = 0) -> dict:
    return {"kind": kind, "message": message, "line": line}


def _execute(module: types.ModuleType, path: str, text: str, seconds: float) -> dict | None:
    """Run the file; None if it ran to its end, else why not."""
    try:
        code = compile(text, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        return _stopped("syntax", error.msg, error.lineno or 0)
    try:
        _limits(seconds)
        exec(code, module.__dict__)
    except TimeUp:
        return _stopped("time", f"still running after {seconds:g} s", _place(traceback.format_exc(), path))
    except SystemExit:
        return None
    except MemoryError:
        return _stopped("memory", "it runs out of memory", _place(traceback.format_exc(), path))
    except BaseException as error:
        trace = traceback.format_exc()
        return _stopped("exception", f"{type(error).__name__}: {errors.first_line(str(error))}", _place(trace, path))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return None


def _tuples(args):
    if isinstance(args, list):
        return tuple(_tuples(item) for item in args)
    return {key: _tuples(value) for key, value in args.items()} if isinstance(args, dict) else args


def run(job: dict, folder: Path) -> None:
    """Inspect one file; the result is rewritten as it grows, so that a killed job still gives what it had found."""
    path, text, request = job["path"], job["text"], job["request"]
    result: dict = {"error": None, "stopped": None, "factories": [], "instances": []}

    def write() -> None:
        partial = folder / (RESULT + ".partial")
        partial.write_text(json.dumps(result), encoding="utf-8")
        os.replace(partial, folder / RESULT)

    lines = Lines(path)
    recorder = record.Recorder(lines, result, write)
    recorder.install()
    fakes.install(recorder)
    result["stopped"] = _stopped("memory", "it was ended while it ran: out of memory, or of time")
    write()
    module = _module(path, text)
    (folder / "step").write_text("the file's own code", encoding="utf-8")
    result["stopped"] = _execute(module, path, text, job["seconds"])
    recorder.collect(module, request.get("kernel", ""), dict(_tuples(request.get("args", {}))))
    write()
