# pyright: basic
"""Executes a user's file with real torch and a stand-in for tilelang whose kernels run in the simulator; run as a process of its own.

The file's own comparison is what is wanted: it sees simulated results where a device would have given its own.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import inspect
import json
import re
import resource
import sys
import traceback
import types
from pathlib import Path

import numpy as np

from fusion.simulator import Buffer, run_kernel

MOST_CALLS = 8
NAME = re.compile(r"\b(?!min\b|max\b)[A-Za-z_]\w*")
MEMORY = 6 << 30


class Enough(BaseException):
    """The file calls its kernels more often than is simulated."""


class Anything:
    """A stand-in for every member of tilelang that only matters on a device."""

    def __getattr__(self, name: str):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Anything()

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs else Anything()

    def __iter__(self):
        return iter(())

    def __enter__(self):
        return self

    def __exit__(self, *_args):
        return False

    def __format__(self, _spec: str) -> str:
        return "?"

    def __float__(self) -> float:
        return 0.0

    def __getitem__(self, _key):
        return Anything()


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "radd", "rsub", "rmul", "rtruediv", "rfloordiv"):
    setattr(Anything, f"__{_name}__", lambda _self, _other: Anything())


class Module(types.ModuleType):
    __path__: list[str] = []  # noqa: RUF012 - the import system's own name

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stand-ins for tilelang and the packages of the device."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def find_spec(self, fullname: str, path=None, target=None):
        if fullname.split(".")[0] in ("tilelang", "torch_npu", "tvm"):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        module = Module(spec.name)
        if spec.name in ("tilelang", "tilelang.jit", "tilelang.autotuner"):
            module.jit, module.autotune = self.session.jit, self.session.autotune  # type: ignore[attr-defined]
        return module

    def exec_module(self, module) -> None:
        return None


class Session:
    """The kernels that were lowered, and what the file has done with them."""

    def __init__(self, job: dict) -> None:
        self.job, self.calls, self.called = job, 0, []

    def jit(self, func=None, **_options):
        return self._factory(func) if callable(func) else self._factory

    def autotune(self, *_args, **_options):
        return lambda function: function

    def _factory(self, function):
        def make(*args, **kwargs):
            bound = inspect.signature(function).bind_partial(*args, **kwargs)
            bound.apply_defaults()
            return Kernel(self, self._find(function.__name__, json.loads(json.dumps(dict(bound.arguments), default=str))))

        return make

    def _find(self, name: str, args: dict) -> dict:
        same = [kernel for kernel in self.job["kernels"] if kernel["factory"] == name]
        exact = [kernel for kernel in same if all(kernel["args"].get(key) == value for key, value in args.items())]
        if not exact:
            raise Enough(f"{name} with other arguments than those that were checked")
        return exact[0]


class Kernel:
    """What a factory gives: called with tensors, it runs in the simulator."""

    def __init__(self, session: Session, made: dict) -> None:
        self.session, self.made = session, made

    def __getattr__(self, name: str):
        return Anything()

    def __call__(self, *tensors, **_kwargs):
        self.session.calls += 1
        if self.session.calls > MOST_CALLS:
            raise Enough("more calls than are simulated")
        self.session.called.append(self.made["index"])
        return self._run(list(tensors))

    def _run(self, tensors: list):
        import torch

        params = [p for p in self.made["params"] if p["role"] != "scalar"]
        given = iter(tensors)
        values = {p["name"]: next(given) for p in params if p["use"] == "given"}
        sizes = self._sizes(params, values)
        buffers = [self._buffer(p, values, sizes) for p in params]
        run = run_kernel(self.made["ascendc"], self.made["name"], buffers, sizes, order=False)
        for p in params:
            if p["use"] == "given" and p["written"]:
                tensor = values[p["name"]]
                tensor.copy_(torch.from_numpy(np.array(run.outputs[p["name"]])).to(tensor.dtype))
        outputs = [self._tensor(p, run.outputs[p["name"]]) for p in params if p["use"] == "out"]
        return outputs[0] if len(outputs) == 1 else outputs or None

    def _sizes(self, params: list, values: dict) -> dict:
        sizes: dict = {}
        for p in params:
            for size, text in zip(values[p["name"]].shape if p["name"] in values else (), p["shape"], strict=False):
                if isinstance(text, str) and text.isidentifier():
                    sizes[text] = int(size)
        for p in params:
            for size, text in zip(values[p["name"]].shape if p["name"] in values else (), p["shape"], strict=False):
                if isinstance(text, str):
                    sizes.update(solved(text, int(size), sizes))
        return sizes

    def _buffer(self, p: dict, values: dict, sizes: dict) -> Buffer:
        shape = tuple(size if isinstance(size, int) else _evaluated(size, sizes) for size in p["shape"])
        if p["use"] != "given":
            return Buffer(p["name"], p["dtype"], shape, role="out" if p["use"] == "out" else "workspace")
        return Buffer(p["name"], p["dtype"], shape, values[p["name"]].reshape(shape), role="inout" if p["written"] else "in")

    def _tensor(self, p: dict, data):
        import torch

        return torch.from_numpy(np.array(data)).to(getattr(torch, str({"float": "float32"}.get(p["dtype"], p["dtype"]))))


def solved(text: str, size: int, known: dict) -> dict:
    """The one unknown of a linear size such as "batch + 1", if that is all that is unknown in it."""
    unknown = sorted({name for name in NAME.findall(text) if name not in known})
    if len(unknown) != 1:
        return {}
    at_zero, at_one = (_evaluated(text, {**known, unknown[0]: value}) for value in (0, 1))
    slope = at_one - at_zero
    return {unknown[0]: (size - at_zero) // slope} if slope and (size - at_zero) % slope == 0 else {}


def _evaluated(text: str, names: dict) -> int:
    return int(eval(text, {"__builtins__": {}, "min": min, "max": max}, dict(names)))


def _host_torch() -> None:
    """Let everything that names the device stay on the CPU."""
    import torch
    from torch.overrides import TorchFunctionMode

    class OnHost(TorchFunctionMode):
        def __torch_function__(self, func, _types, args=(), kwargs=None):
            fixed = {key: "cpu" if key == "device" else value for key, value in (kwargs or {}).items()}
            return func(*["cpu" if isinstance(a, str) and a.startswith("npu") else a for a in args], **fixed)

    torch.Tensor.npu = lambda self, *_args, **_kwargs: self  # type: ignore[attr-defined]
    torch.npu = Anything()  # type: ignore[attr-defined]
    torch.set_default_device = lambda _device: None
    device = torch.device
    torch.device = lambda *args: device("cpu") if args and str(args[0]).startswith("npu") else device(*args)  # type: ignore[misc,assignment]
    OnHost().__enter__()


def run(job: dict) -> dict:
    """Execute the file; what is told is how many kernel calls there were and how it ended."""
    session = Session(job)
    sys.meta_path.insert(0, Finder(session))
    _host_torch()
    module = types.ModuleType("__main__")
    module.__file__ = job["path"]
    sys.modules["__main__"], sys.argv = module, [job["path"]]
    sys.path.insert(0, str(Path(job["path"]).parent))
    end: dict = {"kind": "ended", "message": "", "line": 0}
    try:
        exec(compile(job["text"], job["path"], "exec", dont_inherit=True), module.__dict__)
    except Enough as reason:
        end = {"kind": "enough", "message": str(reason), "line": 0}
    except SystemExit:
        pass
    except BaseException as error:
        lines = [f.lineno or 0 for f in traceback.extract_tb(error.__traceback__) if f.filename == job["path"]]
        first = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        kind = "differs" if isinstance(error, AssertionError) else "failed"
        end = {"kind": kind, "message": first, "line": lines[-1] if lines else 0}
    return {"calls": session.calls, "called": session.called, "end": end}


def main(path: str) -> None:
    """Job file in, result file out."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    job = json.loads(Path(path).read_text(encoding="utf-8"))
    Path(job["result"]).write_text(json.dumps(run(job)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
