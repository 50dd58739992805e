"""Which compiler this machine has: importable here, installed natively, or installed under emulation."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fusion.toolchain import layout, recipe

Kind = Literal["importable", "native", "emulated"]

EMULATED_CPU = "cortex-a72"
"""A processor without pointer authentication: emulating its checks costs a third of the speed."""


@dataclass(frozen=True)
class Compiler:
    """A compiler that was found: how to run its Python, where tilelang's package folder is, and whether unused imports are stubbed."""

    kind: Kind
    version: str
    package: Path
    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    stubs: bool


def find() -> Compiler | None:
    """The first of: tilelang-ascend importable in this Python, the private native one, the private emulated one."""
    return _importable() or _installed()


def _importable() -> Compiler | None:
    spec = importlib.util.find_spec("tilelang")
    if spec is None or spec.origin is None:
        return None
    package = Path(spec.origin).resolve().parent
    if _templates(package) is None or not _built(package):
        return None
    surroundings = {**os.environ, "PYTHONHASHSEED": "0"}
    return Compiler("importable", _version(package), package, (sys.executable,), tuple(sorted(surroundings.items())), False)


def _built(package: Path) -> bool:
    """Whether the compiler's library is there: in the wheel's package, or in the build folder of a source tree."""
    return any((package / "lib").glob("libtilelang*")) or any((package.parent / "build").glob("**/libtilelang*"))


def _version(package: Path) -> str:
    try:
        return importlib.metadata.version("tilelang-ascend")
    except importlib.metadata.PackageNotFoundError:
        file = package / "VERSION"
        return file.read_text(encoding="utf-8").strip() if file.exists() else "unknown"


def _installed() -> Compiler | None:
    try:
        manifest = json.loads(layout.manifest().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    kind, version, python = manifest["kind"], manifest["version"], manifest["python"]
    if kind != expected_kind() or version != recipe.VERSION:
        return None
    return Compiler(kind, version, layout.site() / "tilelang", command(kind, python), environment(python), True)


def expected_kind() -> Kind | None:
    """The kind that a private installation has on this machine; None where there can be none."""
    if sys.platform != "linux":
        return None
    kinds: dict[str, Kind] = {"aarch64": "native", "arm64": "native", "x86_64": "emulated", "amd64": "emulated"}
    return kinds.get(platform.machine().lower())


def command(kind: Kind, python: str) -> tuple[str, ...]:
    """How to start the compiler's Python: `python` is "sysroot" or the path of a native Python 3.11."""
    if python != "sysroot":
        return (python,)
    inside = layout.sysroot()
    binary = str(inside / "usr/bin/python3.11")
    if kind == "emulated":
        return (str(layout.emulator()), "-cpu", EMULATED_CPU, "-L", str(inside), binary)
    loader = inside / "usr/lib/ld-linux-aarch64.so.1"
    return (str(loader), "--library-path", str(inside / "usr/lib/aarch64-linux-gnu"), binary)


def environment(python: str) -> tuple[tuple[str, str], ...]:
    """Nothing of the host's library or Python settings: they are for another processor or another Python."""
    kept = {name: os.environ[name] for name in ("HOME", "PATH", "TMPDIR") if name in os.environ}
    ours = {
        "LANG": "C.UTF-8",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONNOUSERSITE": "1",
        "PYTHONPATH": str(layout.site()),
        "PYTHONPYCACHEPREFIX": str(layout.root() / "pycache"),
    }
    if python == "sysroot":
        ours["PYTHONHOME"] = str(layout.sysroot() / "usr")
    return tuple(sorted({**kept, **ours}.items()))


def _templates(package: Path) -> Path | None:
    """The folder above `tl_templates/`: inside the wheel's package, or beside the package in a source tree."""
    for base in (package / "src", package.parent / "src"):
        if (base / "tl_templates/ascend/common.h").exists():
            return base
    return None


def templates(compiler: Compiler) -> Path:
    """The include folder that holds `tl_templates/ascend/common.h`."""
    found = _templates(compiler.package)
    assert found is not None, compiler.package
    return found


def catlass(compiler: Compiler) -> Path:
    """The include folder that holds `catlass/`."""
    for base in (compiler.package / "3rdparty", compiler.package.parent / "3rdparty"):
        if (base / "catlass/include").exists():
            return base / "catlass/include"
    return compiler.package / "3rdparty/catlass/include"
