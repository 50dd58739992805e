# pyright: basic, reportMissingImports=false
"""From the text of a TileLang module to one prim_func with the options of its `@tilelang.jit`, without running the JIT."""

from __future__ import annotations

import importlib.util
import inspect
from dataclasses import dataclass
from pathlib import Path

import tilelang
from tvm.error import DiagnosticError
from tvm.script.parser.core.diagnostics import Diagnostics
from tvm.tir import PrimFunc

DEVELOPER_MODE = {
    "tl.ascend_auto_cv_combine": True,
    "tl.ascend_auto_cross_core_sync": True,
    "tl.ascend_auto_sync": True,
    "tl.ascend_memory_planning": True,
}


class FrontendError(Exception):
    """The kernel's file, entry or arguments are wrong; the text says which."""


@dataclass
class Factory:
    """What `@tilelang.jit` becomes here: the decorated function and the decorator's options."""

    function: object
    options: dict

    def __call__(self, *args, **kwargs):
        return Built(self.function(*args, **kwargs), self.options)  # type: ignore[operator]


@dataclass
class Built:
    """A prim_func and the options that it is to be lowered with."""

    func: object
    options: dict

    def pass_configs(self) -> dict:
        configs = self.options.get("pass_configs")
        if configs is None:
            return {} if self.options.get("decorated") else dict(DEVELOPER_MODE)
        return {str(getattr(key, "value", key)): value for key, value in configs.items()}


def _recording_jit(func=None, **options):
    """The stand-in for `tilelang.jit`, in both of its forms: `@jit` and `@jit(out_idx=...)`."""
    options["decorated"] = True
    if func is not None:
        return Factory(func, options)
    return lambda function: Factory(function, options)


def _report(self, node, message: str) -> None:
    """Stands in for the parser's own report, which counts lines from the wrong start and fails on them."""
    line = (node.lineno or 1) + self.source.start_line - 1
    raise DiagnosticError(f"line {line}: {message}")


def load(path: Path, name: str):
    """Import the kernel's file with `tilelang.jit` recorded instead of run."""
    tilelang.jit = _recording_jit
    Diagnostics.error = _report
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _candidates(module) -> dict:
    members = {name: value for name, value in vars(module).items() if not name.startswith("_")}
    factories = {name: value for name, value in members.items() if isinstance(value, Factory | Built)}
    return factories or {name: value for name, value in members.items() if isinstance(value, PrimFunc)}


def _pick(module, entry: str):
    if entry:
        if not hasattr(module, entry):
            found = ", ".join(sorted(_candidates(module))) or "none"
            raise FrontendError(f"no `{entry}` in the module; kernels found: {found}")
        return getattr(module, entry)
    found = _candidates(module)
    if len(found) != 1:
        names = ", ".join(sorted(found)) or "none"
        raise FrontendError(f"expected one @tilelang.jit factory or @T.prim_func, found {len(found)}: {names}; name one with `entry`")
    return next(iter(found.values()))


def _check_arguments(function, entry: str, args: dict) -> None:
    try:
        inspect.signature(function).bind(**args)
    except TypeError as error:
        raise FrontendError(f"arguments of `{entry}`: {error}") from None


def build(path: Path, name: str, entry: str, args: dict) -> Built:
    """The prim_func of a kernel file; raises FrontendError for a missing entry or wrong arguments."""
    made = _pick(load(path, name), entry)
    if isinstance(made, Factory) or (callable(made) and not isinstance(made, Built | PrimFunc)):
        _check_arguments(made.function if isinstance(made, Factory) else made, entry or name, args)
        made = made(**args)
    if not isinstance(made, Built):
        made = Built(made, {})
    if not isinstance(made.func, PrimFunc):
        raise FrontendError(f"`{entry or name}` gave {type(made.func).__name__}, not a prim_func")
    return made
