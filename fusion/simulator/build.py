"""Compiling a kernel with the stand-in: one runtime object and one precompiled header for all, then one file a kernel."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from fusion.errors import FusionError
from fusion.paths import home
from fusion.simulator.source import Kernel, rewrite

HERE = Path(__file__).parent
INCLUDE = HERE / "include"
FLAGS = ("-std=c++17", "-O2", "-march=native", "-ffp-contract=off", "-pthread", "-w")
KERNEL_FLAGS = ("-O1", "-ftree-vectorize")


def compiler() -> str:
    """The path of g++ ($CXX overrides). Refuses when there is none."""
    found = shutil.which(os.environ.get("CXX", "g++"))
    if not found:
        raise FusionError("no g++ found", where="simulator", remedy="install g++ 9 or newer (for example `apt install g++`), or set CXX")
    return found


@functools.cache
def compiler_version(path: str) -> str:
    text = subprocess.run([path, "--version"], capture_output=True, text=True, check=False).stdout
    return text.splitlines()[0] if text else path


@functools.cache
def machine() -> str:
    """What -march=native depends on."""
    cpuinfo = Path("/proc/cpuinfo")
    flags = (
        next((line for line in cpuinfo.read_text().splitlines() if line.startswith(("flags", "Features"))), "") if cpuinfo.exists() else ""
    )
    return f"{platform.machine()} {hashlib.sha256(flags.encode()).hexdigest()[:12]}"


def digest(parts: Iterable[str | bytes]) -> str:
    state = hashlib.sha256()
    for part in parts:
        state.update(part.encode() if isinstance(part, str) else part)
        state.update(b"\0")
    return state.hexdigest()[:24]


def _content(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]


@functools.cache
def _standin_digest() -> str:
    return digest([*_content(INCLUDE), (HERE / "runtime.cpp").read_bytes(), *FLAGS, *KERNEL_FLAGS, machine(), compiler_version(compiler())])


def cache() -> Path:
    folder = home() / "cache" / "simulator"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def template_includes(templates: Path | None) -> tuple[Path, Path]:
    """The folders that hold tl_templates/ascend/common.h and catlass. Refuses when the compiler is not installed."""
    for root in _template_roots(templates):
        for source, library in ((root / "src", root / "3rdparty/catlass/include"), (root, root.parent / "3rdparty/catlass/include")):
            if (source / "tl_templates/ascend/common.h").exists() and library.exists():
                return source, library
    raise FusionError("the compiler's template headers are not installed", where="simulator", remedy="run `fusion-plan toolchain install`")


def _template_roots(templates: Path | None) -> list[Path]:
    if templates is not None:
        return [templates]
    try:
        from fusion.toolchain import templates_dir  # pyright: ignore
    except ImportError:
        return [home() / "toolchain/site/tilelang"]
    found = Path(templates_dir())  # pyright: ignore
    return [found, found.parent, found.parent.parent, found.parent.parent.parent]


def run_compiler(arguments: list[str], what: str) -> None:
    done = subprocess.run([compiler(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return
    errors = [line for line in done.stderr.splitlines() if "error:" in line or "static assertion" in line] or done.stderr.splitlines()[-3:]
    origin = next((line for line in done.stderr.splitlines() if "required from here" in line), "")
    raise FusionError("; ".join(errors[:3]) + (f" ({origin.strip()})" if origin else ""), where=what,
                      remedy="a name that the simulator does not cover, or code that does not type-check")  # fmt: skip


def publish(make: Path, target: Path) -> Path:
    """Moves a finished file into the cache in one step, so that a parallel build never sees half of it."""
    os.replace(make, target)
    return target


def runtime_object() -> Path:
    target = cache() / f"runtime-{_standin_digest()}.o"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=cache()) as folder:
            made = Path(folder) / "runtime.o"
            run_compiler([*FLAGS, "-I", str(INCLUDE), "-c", str(HERE / "runtime.cpp"), "-o", str(made)], "simulator runtime")
            publish(made, target)
    return target


def prelude(kernel: Kernel, templates: Path | None) -> tuple[Path, list[str]]:
    """The precompiled header that replaces the kernel's includes, and the include flags that go with it."""
    text = '#include "kernel_operator.h"\n#include "acl/acl.h"\n#include "runtime/rt_ffts.h"\n#include "sim/glue.hpp"\n'
    folders = [INCLUDE]
    if kernel.needs_templates:
        source, library = template_includes(templates)
        folders += [source, library]
        text += '#include "tl_templates/ascend/common.h"\n#include "tl_templates/ascend/printf.h"\n'
    flags = [flag for folder in folders for flag in ("-I", str(folder))]
    stamp = digest(
        [_standin_digest(), text, *flags, *[p.read_bytes() for f in folders[1:2] for p in sorted(f.glob("tl_templates/ascend/*.h"))]]
    )
    header = cache() / f"prelude-{stamp}" / "prelude.hpp"
    if not header.with_suffix(".hpp.gch").exists():
        header.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache()) as folder:
            plain = Path(folder) / "prelude.hpp"
            plain.write_text(text)
            publish(plain, header)
            made = Path(folder) / "prelude.hpp.gch"
            run_compiler([*FLAGS, *KERNEL_FLAGS, *flags, "-x", "c++-header", str(header), "-o", str(made)], "simulator headers")
            publish(made, header.with_suffix(".hpp.gch"))
    return header, flags


def build(ascendc: str, kernel: Kernel, templates: Path | None = None) -> Path:
    """The executable of a kernel, from the cache if the same source was built before."""
    header, flags = prelude(kernel, templates)
    target = cache() / f"kernel-{digest([header.parent.name, ascendc])}"
    if target.exists():
        return target
    with tempfile.TemporaryDirectory(dir=cache()) as folder:
        source, made = Path(folder) / f"{kernel.name}.cpp", Path(folder) / "kernel"
        source.write_text(rewrite(ascendc, kernel))
        run_compiler(
            [*FLAGS, *KERNEL_FLAGS, *flags, "-include", str(header), str(source), str(runtime_object()), "-o", str(made)], kernel.name
        )
        return publish(made, target)
