"""Loads an operator from a user's Python file, and says what is wrong with the file if it cannot."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType

from fusion.errors import FusionError, did_you_mean
from fusion.graph import Operator


def operator_in(spec: str) -> Operator[...]:
    """The operator that `path.py` or `path.py:function` names."""
    path, wanted = _split(spec)
    if not path.is_file():
        raise FusionError(f"no file {path}", remedy="give the path of a Python file with an @operator function")
    found = _operators(_run(path))
    if not found:
        raise FusionError("no operator in this file", where=str(path), remedy="decorate a function with @fusion.graph.operator")
    if wanted and wanted not in found:
        raise FusionError(f"no operator {wanted!r} in this file", where=str(path), remedy=did_you_mean(wanted, found))
    if not wanted and len(found) > 1:
        choices = " or ".join(f"{path}:{name}" for name in sorted(found))
        raise FusionError(f"{len(found)} operators in this file", where=str(path), remedy=f"say which: {choices}")
    return found[wanted or next(iter(found))]


def _split(spec: str) -> tuple[Path, str]:
    head, colon, tail = spec.rpartition(":")
    if colon and head.endswith(".py"):
        return Path(head), tail
    return Path(spec), ""


def _operators(module: ModuleType) -> dict[str, Operator[...]]:
    """Operators that the file itself defines, not those that it imports."""
    found: dict[str, Operator[...]] = {}
    for value in vars(module).values():
        if isinstance(value, Operator) and value.build.__module__ == module.__name__:
            found[value.name] = value
    return found


def _run(path: Path) -> ModuleType:
    """Imports the file, with its folder importable as for a script. Raises FusionError with the line that fails."""
    spec = importlib.util.spec_from_file_location(f"fusion_plan_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise FusionError("not a Python file", where=str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[spec.name]
        raise FusionError(_what(error, path), where=_where(error, path), remedy=_remedy(error, path)) from error
    finally:
        sys.path.remove(str(path.resolve().parent))
    return module


def _what(error: BaseException, path: Path) -> str:
    """What went wrong; the place too if it is a syntax error in a file that this one imports."""
    if isinstance(error, FusionError):
        return f"{error.where}: {error.what}" if error.where else error.what
    if isinstance(error, SyntaxError):
        elsewhere = "" if _is(error.filename, path) else f" in {error.filename}:{error.lineno}"
        return f"{type(error).__name__}: {error.msg}{elsewhere}"
    if isinstance(error, SystemExit):
        return f"SystemExit: {error.code}: the file ends the program while it is imported"
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


def _remedy(error: BaseException, path: Path) -> str:
    if isinstance(error, FusionError):
        return error.remedy or "correct the line"
    if isinstance(error, ModuleNotFoundError):
        return f"install {error.name} for {sys.executable}, or put it beside the file"
    if isinstance(error, SyntaxError):
        return "correct the line: the file must be Python, in UTF-8"
    if isinstance(error, SystemExit):
        return "put what is no operator under `if __name__ == '__main__':`"
    return f"correct the line, or put what is no operator under `if __name__ == '__main__':`; `python {path}` shows all of it"


def _where(error: BaseException, path: Path) -> str:
    """`file:line` of the syntax error, else of the last frame in the file."""
    if isinstance(error, SyntaxError) and _is(error.filename, path) and error.lineno:
        return f"{path}:{error.lineno}"
    frames = [f.lineno for f in traceback.extract_tb(error.__traceback__) if _is(f.filename, path) and f.lineno]
    return f"{path}:{frames[-1]}" if frames else str(path)


def _is(filename: str | None, path: Path) -> bool:
    return filename is not None and Path(filename).resolve() == path.resolve()
