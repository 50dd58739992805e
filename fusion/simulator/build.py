"""Compiling a kernel with the stand-in: one runtime object and one precompiled header for all, then one file a kernel."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from fusion.errors import FusionError
from fusion.files import keep_bytes, keep_newest, newest_first
from fusion.paths import home
from fusion.simulator.source import Kernel, rewrite

HERE = Path(__file__).parent
INCLUDE = HERE / "include"
FLAGS = ("-std=c++17", "-O2", "-march=native", "-ffp-contract=off", "-pthread", "-w")
GENERATED = re.compile(r"generated\.cpp:(\d+):")
NOT_COMPILED = "a name that the simulator does not cover, or generated code that does not type-check"
KERNEL_FLAGS = ("-O1", "-ftree-vectorize")
RUNTIME_FLAGS = ("-O3", "-ffp-contract=fast")  # Mmad is fused; nothing else in the runtime multiplies


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
    return digest(
        [
            *_content(INCLUDE),
            (HERE / "runtime.cpp").read_bytes(),
            *FLAGS,
            *KERNEL_FLAGS,
            *RUNTIME_FLAGS,
            machine(),
            compiler_version(compiler()),
        ]
    )


def cache() -> Path:
    folder = home() / "cache" / "simulator"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def template_includes(templates: Path | None) -> tuple[Path, Path]:
    """The folders that hold tl_templates/ascend/common.h and catlass: those of the installed compiler, or of `templates`."""
    if templates is None:
        from fusion.toolchain import catlass_dir, templates_dir  # only kernels of the compiler need the compiler's headers

        return templates_dir(), catlass_dir()
    source, library = templates / "src", templates / "3rdparty/catlass/include"
    if not ((source / "tl_templates/ascend/common.h").exists() and (library / "catlass").exists()):
        raise FusionError(
            "no src/tl_templates/ascend/common.h and 3rdparty/catlass here",
            where=str(templates),
            remedy="give the folder of the tilelang package",
        )
    return source, library


def run_compiler(arguments: list[str], what: str, source: list[str] | None = None) -> None:
    """Runs g++. A failure names the generated line, its text and the message; `source` are the generated lines."""
    done = subprocess.run([compiler(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise FusionError("; ".join(readable_errors(done.stderr, source or [])), where=what, remedy=NOT_COMPILED)


def readable_errors(stderr: str, source: list[str]) -> list[str]:
    """The first three errors of g++, each tied to the generated line that caused it (also from inside a template)."""
    found: list[str] = []
    caused_at = 0
    for line in stderr.splitlines():
        here = GENERATED.search(line)
        if here and ("required from here" in line or "error:" in line):
            caused_at = int(here[1])
        if "error:" in line:
            text = source[caused_at - 1].strip() if 0 < caused_at <= len(source) else ""
            found.append(f"line {caused_at}: `{text}`: {line.split('error:', 1)[1].strip()}" if text else line.strip())
            caused_at = 0
    return found[:3] or stderr.splitlines()[-3:]


def prune(keep_headers: int = 6, kernel_bytes: int = 512 << 20) -> None:
    """Bounds the cache: the newest precompiled headers (tens of MB each) and runtimes, and the kernels and outlines used last."""
    for path, _ in newest_first(cache().glob("prelude-*"))[keep_headers:]:
        shutil.rmtree(path, ignore_errors=True)
    keep_newest(cache().glob("runtime-*.o"), keep_headers)
    keep_bytes(cache().glob("kernel-*"), kernel_bytes)
    keep_bytes(cache().glob("outline-*"), kernel_bytes)


def publish(make: Path, target: Path) -> Path:
    """Moves a finished file into the cache in one step, so that a parallel build never sees half of it."""
    os.replace(make, target)
    return target


def runtime_object() -> Path:
    target = cache() / f"runtime-{_standin_digest()}.o"
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=cache()) as folder:
            made = Path(folder) / "runtime.o"
            run_compiler(
                [*FLAGS, *RUNTIME_FLAGS, "-I", str(INCLUDE), "-c", str(HERE / "runtime.cpp"), "-o", str(made)], "simulator runtime"
            )
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
        prune()
    os.utime(header.parent)
    return header, flags


def build(ascendc: str, kernel: Kernel, templates: Path | None = None) -> Path:
    """The executable of a kernel, from the cache if the same source was built before."""
    header, flags = prelude(kernel, templates)
    target = cache() / f"kernel-{digest([header.parent.name, ascendc])}"
    if target.exists():
        os.utime(target)  # prune keeps what was used last
        return target
    with tempfile.TemporaryDirectory(dir=cache()) as folder:
        source, made = Path(folder) / "generated.cpp", Path(folder) / "kernel"
        source.write_text(rewrite(ascendc, kernel))
        arguments = [*FLAGS, *KERNEL_FLAGS, *flags, "-include", str(header), str(source), str(runtime_object()), "-s", "-o", str(made)]
        run_compiler(arguments, kernel.name, ascendc.splitlines())
        return publish(made, target)
