# pyright: basic, reportMissingImports=false
"""The compiler's own pass pipeline with a trace, passes of ours at named points, and TIR printed where asked.

tilelang's phases look every pass up as `tilelang.transform.X` or `tir.transform.X`; both names are replaced, in that one module,
by a view that wraps each pass object. Nothing of tvm or tilelang is changed, and passes added by later releases are seen too.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tilelang.engine import phase
from tvm.ir.transform import Pass

LOWER_MODULE = "tilelang.engine.lower"
"""Reachable by this name only: its package gives the attribute `lower` to the function in it."""

CODEGEN = "codegen"
"""The name under which the step from TIR to source appears among the passes."""


@dataclass
class Hook:
    """One pass of ours: its function, options, and where it runs: `when` is "before" or "after" the compiler's pass `anchor`."""

    name: str
    when: str
    anchor: str
    run: Callable
    options: dict
    used: bool = False


@dataclass
class Trace:
    """What happens around the compiler's passes during one lowering."""

    enter: Callable[[str], None]
    hooks: list[Hook] = field(default_factory=list)
    printed: frozenset[str] = frozenset()
    findings: list[dict] = field(default_factory=list)
    dumps: list[list[str]] = field(default_factory=list)

    def around(self, name: str, step: Callable, mod):
        """Run one step of the compiler on `mod` with everything that is attached to its name."""
        mod = self._hooked("before", name, mod)
        self.enter(name)
        result = step(mod)
        if name == CODEGEN:
            return result
        result = self._hooked("after", name, result)
        self._print(name, result)
        return result

    def _hooked(self, when: str, anchor: str, mod):
        for hook in self.hooks:
            if hook.when == when and hook.anchor == anchor and not hook.used:
                self.enter(hook.name)
                hook.used = True
                mod, found = hook.run(mod, hook.options)
                self.findings += [{"pass": hook.name, **finding} for finding in found]
        return mod

    def _print(self, name: str, mod) -> None:
        if name in self.printed or "*" in self.printed:
            text = mod.script()
            if not self.dumps or self.dumps[-1][1] != text:
                self.dumps.append([name, text])


class _Traced:
    """A pass object whose call goes through the trace."""

    def __init__(self, inner, name: str, trace: Trace) -> None:
        self._inner, self._name, self._trace = inner, name, trace

    def __call__(self, mod):
        return self._trace.around(self._name, self._inner, mod)


class _TransformView:
    """`tilelang.transform` or `tir.transform` with traced passes."""

    def __init__(self, inner, trace: Trace) -> None:
        self._inner, self._trace = inner, trace

    def __getattr__(self, name: str):
        made = getattr(self._inner, name)
        if not callable(made) or isinstance(made, type):
            return made

        def factory(*args, **kwargs):
            result = made(*args, **kwargs)
            return _Traced(result, name, self._trace) if isinstance(result, Pass) else result

        return factory


class _ModuleView:
    """A module whose `transform` is a view; every other member is the module's own."""

    def __init__(self, inner, trace: Trace) -> None:
        self._inner = inner
        self.transform = _TransformView(inner.transform, trace)

    def __getattr__(self, name: str):
        return getattr(self._inner, name)


def attach(trace: Trace) -> None:
    """Route this process's lowerings through `trace`; meant for a process that lowers once."""
    phase.tilelang = _ModuleView(phase.tilelang, trace)
    phase.tir = _ModuleView(phase.tir, trace)
    members = vars(sys.modules[LOWER_MODULE])
    codegen = members["device_codegen"]
    members["device_codegen"] = lambda mod, *rest: trace.around(CODEGEN, lambda inner: codegen(inner, *rest), mod)


def load_hook(folder: Path, index: int, spec: dict) -> Hook:
    """Import one pass of ours from its source text; raises ValueError without a `run` function or with an ill-formed place."""
    when, _, anchor = spec["at"].partition(" ")
    if when not in ("before", "after") or not anchor:
        raise ValueError(f"pass {spec['name']}: place {spec['at']!r} is not 'before PASS' or 'after PASS'")
    path = folder / f"tir_pass_{index}.py"
    path.write_text(spec["source"], encoding="utf-8")
    module_spec = importlib.util.spec_from_file_location(path.stem, path)
    assert module_spec is not None and module_spec.loader is not None
    module = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(module)
    if not callable(getattr(module, "run", None)):
        raise ValueError(f"pass {spec['name']}: its file has no function `run(mod, options)`")
    return Hook(spec["name"], when, anchor, module.run, spec["options"])
