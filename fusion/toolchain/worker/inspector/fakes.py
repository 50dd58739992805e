# pyright: basic, reportMissingImports=false
"""Stand-ins for what a kernel's file does around its kernels: tensors without data, devices, benchmarks, packages that are not here."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import math
import sys
import types

from tvm import tir

_overrides: dict[str, dict] = {}


def override(module: str, members: dict) -> None:
    """Members that a stand-in module is to have."""
    _overrides.setdefault(module, {}).update(members)


class Fake:
    """Answers to everything with another of its kind: an attribute, a call, an item, a number."""

    def __getattr__(self, name: str):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return Fake()

    def __call__(self, *args, **kwargs):
        return args[0] if len(args) == 1 and callable(args[0]) and not kwargs and not isinstance(args[0], Fake) else Fake()

    def __getitem__(self, _key):
        return Fake()

    def __setitem__(self, _key, _value):
        return None

    def __iter__(self):
        return iter(())

    def __len__(self) -> int:
        return 1

    def __bool__(self) -> bool:
        return True

    def __int__(self) -> int:
        return 1

    __index__ = __int__

    def __float__(self) -> float:
        return 1.0

    def __format__(self, _spec: str) -> str:
        return "?"

    def __enter__(self):
        return self

    def __exit__(self, *_args):
        return False

    def __mro_entries__(self, _bases):
        return (object,)

    def __hash__(self) -> int:
        return id(self)


def _same(self, *_args):
    return self


def _fresh(_self, *_args):
    return Fake()


def _true(_self, _other=None):
    return True


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"):
    setattr(Fake, f"__{_name}__", _fresh)
    setattr(Fake, f"__r{_name}__", _fresh)
for _name in ("neg", "pos", "invert", "abs"):
    setattr(Fake, f"__{_name}__", _fresh)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Fake, f"__{_name}__", _true)


class Tensor(Fake):
    """A tensor of which only the shape is known."""

    def __init__(self, shape=(), dtype=None, **_kwargs) -> None:
        self.shape, self.dtype = tuple(shape), dtype

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        return math.prod(self.shape)

    def transpose(self, a: int, b: int):
        shape = list(self.shape)
        shape[a], shape[b] = shape[b], shape[a]
        return Tensor(shape, self.dtype)

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 1

    @property
    def T(self):
        return Tensor(reversed(self.shape), self.dtype)


KEEPING = (
    "npu", "cuda", "cpu", "half", "float", "bfloat16", "to", "clone", "contiguous", "detach", "requires_grad_", "normal_", "uniform_",
    "fill_", "zero_", "type", "double", "int", "long", "abs", "exp", "sigmoid", "mul_", "div_", "random_",
)  # fmt: skip
for _name in KEEPING:
    setattr(Tensor, _name, lambda self, *_args, **_kwargs: self)


def _shape(args) -> tuple | None:
    if len(args) == 1 and isinstance(args[0], list | tuple):
        args = args[0]
    return tuple(args) if args and all(isinstance(size, int) and not isinstance(size, bool) for size in args) else None


def _make(*args, dtype=None, size=None, **_kwargs):
    shape = _shape(tuple(size) if size is not None else args)
    return Fake() if shape is None else Tensor(shape, dtype)


def _sized_after(count: int):
    def make(*args, size=None, dtype=None, **_kwargs):
        given = size if size is not None else next((a for a in args[: count + 1] if isinstance(a, list | tuple)), None)
        return _make(*given, dtype=dtype) if given is not None else Fake()

    return make


def _like(tensor, *_args, **_kwargs):
    return Tensor(tensor.shape, tensor.dtype) if isinstance(tensor, Tensor) else Fake()


TORCH = {
    **dict.fromkeys(("randn", "rand", "zeros", "ones", "empty"), _make),
    "randint": _sized_after(2),
    "full": _sized_after(0),
    "normal": _sized_after(2),
    **dict.fromkeys(("randn_like", "rand_like", "zeros_like", "ones_like", "empty_like", "full_like"), _like),
    "Tensor": Tensor,
    "device": lambda *_args: Fake(),
    "allclose": lambda *_args, **_kwargs: True,
}


class Kernel(Fake):
    """What a factory gives: called, it answers with tensors of its outputs' shapes."""

    def __init__(self, func, options: dict) -> None:
        self.func, self.options = func, options

    def __call__(self, *_args, **_kwargs):
        found = self._outputs()
        return (found[0] if len(found) == 1 else found) if found else Fake()

    def _outputs(self) -> list:
        out = self.options.get("out_idx")
        if self.func is None or out is None:
            return []
        params = [self.func.buffer_map.get(param) for param in self.func.params]
        picked = [params[int(i)] for i in (out if isinstance(out, list | tuple) else [out])]
        sizes = [None if b is None else [int(s) if isinstance(s, tir.IntImm) else None for s in b.shape] for b in picked]
        return [Fake() if size is None or None in size else Tensor(size) for size in sizes]

    def get_kernel_source(self, *_args, **_kwargs) -> str:
        return ""

    def __iter__(self):
        return iter(())


class _Module(types.ModuleType):
    """A module that has every member; `__path__` makes it a package, so that its submodules are found too."""

    __path__: list[str] = []  # noqa: RUF012 - the import system's own name

    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        value = Fake()
        setattr(self, name, value)
        return value


FAKED = (
    "torch",
    "torch_npu",
    "torchvision",
    "triton",
    "tilelang.autotuner",
    "tilelang.profiler",
    "tilelang.carver",
    "tilelang.cache",
    "tilelang.testing",
)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """First: stand-ins for the trees of FAKED. Last (as `missing`): for any package that nothing else finds."""

    def __init__(self, missing: bool) -> None:
        self.missing = missing

    def find_spec(self, fullname: str, path=None, target=None):
        wanted = any(fullname == tree or fullname.startswith(tree + ".") for tree in FAKED)
        if wanted != self.missing or (self.missing and fullname.split(".")[0] not in sys.builtin_module_names and self._foreign(fullname)):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def _foreign(self, fullname: str) -> bool:
        return not fullname.startswith(("tilelang", "tvm", "_")) and fullname.split(".")[0] not in sys.stdlib_module_names

    def create_module(self, spec):
        module = _Module(spec.name)
        members = {**(TORCH if spec.name == "torch" else {}), **_overrides.get(spec.name, {})}
        for name, value in members.items():
            setattr(module, name, value)
        return module

    def exec_module(self, module) -> None:
        return None


def install(_recorder) -> None:
    """Replace what is already imported, and what is imported from here on."""
    for name in [name for name in sys.modules if any(name == tree or name.startswith(tree + ".") for tree in FAKED)]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Finder(missing=False))
    sys.meta_path.append(_Finder(missing=True))
    import tilelang

    tilelang.profiler = importlib.import_module("tilelang.profiler")
    tilelang.autotuner = importlib.import_module("tilelang.autotuner")
    for name in ("disable_cache", "enable_cache", "set_log_level"):
        setattr(tilelang, name, lambda *_args, **_kwargs: None)
    if "tilelang.jit" in sys.modules:
        for name, value in _overrides.get("tilelang.jit", {}).items():
            setattr(sys.modules["tilelang.jit"], name, value)
