# pyright: basic, reportMissingImports=false
"""What stands in for `tilelang.jit`, `tilelang.compile` and the autotuner: they record the kernels that the file makes."""

from __future__ import annotations

import inspect
import traceback

import tilelang
import tvm
from tvm.script.parser.core.diagnostics import Diagnostics
from tvm.tir import PrimFunc

from .. import errors, frontend
from . import fakes
from .tirjson import Converter, Unknown

MOST_OF_A_FACTORY = 6
"""Kernels that one factory may give; an autotuner or a test matrix makes hundreds."""
MOST_INSTANCES = 48
"""Kernels that one file may give."""


def _plain(value):
    """A value as JSON can hold it; anything else as its text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return {str(key): _plain(item) for key, item in value.items()} if isinstance(value, dict) else str(value)


def _configs(options: dict) -> dict | None:
    configs = options.get("pass_configs")
    if configs is None:
        return {} if options.get("decorated") else None
    return {str(getattr(key, "value", key)): _plain(value) for key, value in configs.items()}


def _first_config(configs) -> dict:
    """The autotuner's first configuration; its list may be made by a function."""
    try:
        listed = configs() if callable(configs) else configs
        return dict(next(iter(listed)))  # pyright: ignore[reportCallIssue, reportArgumentType]
    except Exception:
        return {}


class Factory:
    """A decorated function; calling it builds a kernel and records it with its arguments."""

    def __init__(self, function, options: dict, recorder: Recorder) -> None:
        self.function, self.options, self.recorder, self.tuned = function, options, recorder, {}
        self.__name__ = getattr(function, "__name__", "kernel")
        self.__wrapped__ = function
        recorder.factories.append(self)

    def __call__(self, *args, **kwargs):
        kwargs.pop("__tune_params", None)
        bound = self.bind(args, kwargs)
        line = _caller_line(self.recorder) or self.describe()["line"]
        return self.recorder.instance(self.__name__, bound, lambda: self.function(**bound), self.options, line)

    def bind(self, args, kwargs) -> dict:
        signature = inspect.signature(self.function)
        known = {key: value for key, value in self.tuned.items() if key in signature.parameters and key not in kwargs}
        bound = signature.bind_partial(*args, **kwargs)
        bound = signature.bind_partial(*args, **{**{k: v for k, v in known.items() if k not in bound.arguments}, **kwargs})
        bound.apply_defaults()
        return dict(bound.arguments)

    def missing(self, given: dict) -> list[str]:
        parameters = inspect.signature(self.function).parameters.values()
        needed = [p.name for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        return [name for name in needed if name not in given and name not in self.tuned]

    def describe(self) -> dict:
        code = getattr(self.function, "__code__", None)
        parameters = inspect.signature(self.function).parameters.values()
        listed = [
            {"name": p.name, "required": p.default is p.empty, "default": None if p.default is p.empty else _plain(p.default)}
            for p in parameters
        ]
        return {
            "name": self.__name__,
            "line": code.co_firstlineno if code else 0,
            "params": listed,
            "file": code.co_filename if code else "",
        }


def _caller_line(recorder: Recorder) -> int:
    for frame in reversed(traceback.extract_stack()):
        if frame.filename == recorder.lines.path:
            return frame.lineno or 0
    return 0


class Recorder:
    """Collects factories and the kernels that were made of them."""

    def __init__(self, lines, result: dict, write) -> None:
        self.lines, self.result, self.write = lines, result, write
        self.factories: list[Factory] = []
        self.seen: set[str] = set()
        result["skipped"] = {}

    def install(self) -> None:
        Diagnostics.error = frontend._report
        tilelang.jit = self.jit
        tilelang.compile = self.compile
        tilelang.autotune = self.autotune
        for name in ("tilelang.jit", "tilelang.autotuner"):
            fakes.override(name, {"jit": self.jit, "compile": self.compile, "autotune": self.autotune})

    def jit(self, func=None, **options):
        options["decorated"] = True
        if callable(func) and not isinstance(func, PrimFunc):
            return Factory(func, options, self)
        return lambda function: self._decorate(function, options)

    def _decorate(self, function, options: dict):
        if isinstance(function, Factory):
            function.options.update(options)
            return function
        return Factory(function, options, self)

    def autotune(self, func=None, configs=None, **_options):
        def decorate(function):
            made = function if isinstance(function, Factory) else None
            if made is not None:
                made.tuned = _first_config(configs)
            return function

        return decorate(func) if callable(func) else decorate

    def compile(self, func=None, **options):
        options["decorated"] = True
        attrs = func.attrs if isinstance(func, PrimFunc) else None  # pyright: ignore[reportOptionalMemberAccess]
        name = str(attrs["global_symbol"]) if attrs else "kernel"
        return self.instance(getattr(func, "__name__", name), {}, lambda: func, options, _caller_line(self), lined=False)

    def instance(self, name: str, args: dict, build, options: dict, line: int, lined: bool = True):
        """Build one kernel and record it, or the reason why it cannot be built; gives what the file goes on with."""
        key = repr((name, sorted((k, repr(v)) for k, v in args.items())))
        if lined and key in self.seen:
            return fakes.Kernel(None, {})
        self.seen.add(key)
        if lined and self._enough(name):
            self.result["skipped"][name] = self.result["skipped"].get(name, 0) + 1
            return fakes.Kernel(None, {})
        entry = {"factory": name, "args": _plain(args), "line": line, "out_idx": _plain(options.get("out_idx")), "error": None}
        entry |= {"workspace_idx": _plain(options.get("workspace_idx")), "configs": _configs(options), "program": None, "tir": ""}
        self.result["instances"].append(entry)
        try:
            if lined:
                self.lines.reset()
            func = build()
            self._convert(entry, func)
            return fakes.Kernel(func, options)
        except Exception as error:
            entry["error"] = self._failure(error)
            raise
        finally:
            self.write()

    def _enough(self, name: str) -> bool:
        """Whether no more kernels of this factory are looked at."""
        mine = [entry for entry in self.result["instances"] if entry["factory"] == name]
        return len(mine) >= MOST_OF_A_FACTORY or len(self.result["instances"]) >= MOST_INSTANCES

    def _convert(self, entry: dict, func) -> None:
        func = func.func if isinstance(func, fakes.Kernel) else func
        if not isinstance(func, PrimFunc):
            raise frontend.FrontendError(f"`{entry['factory']}` gave {type(func).__name__}, not a prim_func")
        entry["tir"] = tvm.ir.save_json(func)
        try:
            entry["program"] = Converter(func, self.lines).program()
        except Unknown as unknown:
            entry["unread"] = str(unknown)

    def _failure(self, error: Exception) -> dict:
        trace = traceback.format_exc()
        line = 0
        text = errors.first_line(str(error)) if str(error).strip() else type(error).__name__
        if text.startswith("line ") and ":" in text:
            head, _, text = text.partition(": ")
            line = int(head.split()[1])
        else:
            lines = [frame.lineno or 0 for frame in traceback.extract_tb(error.__traceback__) if frame.filename == self.lines.path]
            line = lines[-1] if lines else 0
        return {"message": text, "line": line, "details": errors.without_frames(trace)}

    def collect(self, module, kernel: str, args: dict) -> None:
        """After the file has run: what it defines, and the kernels that it did not make itself."""
        own = [factory for factory in self.factories if factory.describe()["file"] == self.lines.path]
        self.result["factories"] = [factory.describe() for factory in own]
        made = {entry["factory"] for entry in self.result["instances"]}
        for factory in own:
            if kernel and factory.__name__ != kernel:
                continue
            known = {key: value for key, value in args.items() if key in inspect.signature(factory.function).parameters}
            if known:
                self._with_arguments(factory, known)
            elif factory.__name__ not in made:
                self._with_defaults(factory)
        self._prim_funcs(module, kernel)

    def _with_arguments(self, factory: Factory, args: dict) -> None:
        earlier = [e for e in self.result["instances"] if e["factory"] == factory.__name__ and not e["error"]]
        base = frontend_args(earlier[0]["args"]) if earlier else {}
        self.result["instances"] = [e for e in self.result["instances"] if e["factory"] != factory.__name__]
        self.result["skipped"].pop(factory.__name__, None)
        self._build(factory, {**base, **args})

    def _with_defaults(self, factory: Factory) -> None:
        self._build(factory, {})

    def _build(self, factory: Factory, args: dict) -> None:
        missing = factory.missing(args)
        if missing:
            self._refuse(factory, "needs a value for " + ", ".join(missing))
            return
        self.seen.clear()
        try:
            factory(**args)
        except Exception as error:
            if not self.result["instances"]:
                self._refuse(factory, str(error))

    def _refuse(self, factory: Factory, message: str) -> None:
        line = factory.describe()["line"]
        entry = {"factory": factory.__name__, "args": {}, "line": line, "out_idx": None, "workspace_idx": None, "configs": None}
        entry |= {"program": None, "tir": "", "error": {"message": message, "line": line, "details": "", "kind": "arguments"}}
        self.result["instances"].append(entry)

    def _prim_funcs(self, module, kernel: str) -> None:
        """Prim_funcs at the file's top level, of which no kernel was made; their lines cannot be told apart if there are several."""
        found = {name: value for name, value in vars(module).items() if isinstance(value, PrimFunc)}
        made = {entry["factory"] for entry in self.result["instances"]}
        for name, func in found.items():
            if name in made or (kernel and name != kernel):
                continue
            if len(found) > 1:
                self.lines.reset()
            self.instance(name, {}, lambda func=func: func, {}, 0, lined=False)


def frontend_args(args: dict) -> dict:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in args.items()}
