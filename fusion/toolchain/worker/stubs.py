# pyright: basic
"""Empty stand-ins for what tilelang imports and lowering never uses: they save most of the start-up time under emulation."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types

STUBBED = (
    "torch",
    "torch_npu",
    "tqdm",
    "tilelang.autotuner",
    "tilelang.cache",
    "tilelang.carver",
    "tilelang.jit.adapter",
    "tilelang.profiler",
    "tvm.relax",
    "tvm.relay",
)
"""Module trees that are replaced as a whole in the private environment."""

ABSENT = ("ml_dtypes",)
"""Modules that tvm does without when their import fails, and that are slow to import."""

NO_SUCH_MEMBER = ("npu", "cuda")
"""Members whose presence would mean that a device is there."""


class _StubClass(type):
    """A class whose members are classes of the same kind, so that `torch.nn.Module` can be inherited from or annotated with."""

    def __getattr__(cls, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return _stub_class(name)


def _stub_class(name: str):
    def init(_self, *_args, **_kwargs) -> None:
        return None

    def call(self, *args, **_kwargs):
        return args[0] if args else self

    return _StubClass(name, (), {"__init__": init, "__call__": call})


class _StubModule(types.ModuleType):
    __path__: list[str] = []  # noqa: RUF012 - the import system's own name

    def __getattr__(self, name: str):
        if name.startswith("__") or name in NO_SUCH_MEMBER:
            raise AttributeError(name)
        value = _stub_class(name)
        setattr(self, name, value)
        return value


class _StubFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname: str, path=None, target=None):
        if any(fullname == tree or fullname.startswith(tree + ".") for tree in STUBBED):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        return _StubModule(spec.name)

    def exec_module(self, module) -> None:
        return None


def install() -> None:
    """Put the stand-ins in front of the import system; call before the first `import tilelang`."""
    for name in ABSENT:
        sys.modules[name] = None  # type: ignore[assignment]
    sys.meta_path.insert(0, _StubFinder())
