"""Reading and rewriting generated Ascend C: its signature, its address map, and the marks that tell which line runs."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fusion.errors import FusionError
from fusion.words import count

SIZES = {"half": 2, "bfloat16_t": 2, "float": 4, "int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int": 4, "int32_t": 4,
         "uint32_t": 4, "int64_t": 8, "uint64_t": 8}  # fmt: skip
MEMORY_OF = {"A1": "L1", "B1": "L1", "A2": "L0A", "B2": "L0B", "CO1": "L0C", "VECCALC": "UB", "VECIN": "UB", "VECOUT": "UB"}

KERNEL = re.compile(r'extern "C"\s+__global__\s+__aicore__\s+void\s+(\w+)\s*\(([^)]*)\)')
CALL = re.compile(r'extern "C"\s+void\s+call\s*\(([^)]*)\)')
LAUNCH = re.compile(r"(\w+)\s*<<<\s*(.+?)\s*,\s*nullptr\s*,\s*stream\s*>>>\s*\((.*)\)\s*;")
TBUF = re.compile(r"AscendC::TBuf<AscendC::TPosition::(\w+)>\s+(\w+)\s*;")
LOCAL = re.compile(r"auto\s+(\w+)\s*=\s*(\w+)\.GetWithOffset<([\w:]+)>\(\s*(\d+)\s*,\s*(\d+)\s*\)")
FOR = re.compile(r"for \((?:\w+) (\w+) = .*\{\s*$")
OWN_INCLUDES = re.compile(r'^\s*#include\s+["<](tl_templates/ascend/\w+\.h|acl/acl\.h|runtime/rt_ffts\.h|kernel_operator\.h)[">]')


@dataclass(frozen=True)
class Local:
    """A buffer of the address map: bytes [lo, hi) of an on-chip memory."""

    name: str
    memory: str
    lo: int
    hi: int
    line: int


@dataclass(frozen=True)
class Parameter:
    type: str
    name: str

    @property
    def is_buffer(self) -> bool:
        return self.type == "GM_ADDR" or self.type.endswith("*")


@dataclass(frozen=True)
class Kernel:
    """What the host side needs to know about one generated kernel."""

    name: str
    parameters: tuple[Parameter, ...]
    has_launcher: bool
    vectors: int
    needs_templates: bool
    locals: tuple[Local, ...]


def parse_parameters(text: str) -> tuple[Parameter, ...]:
    """'GM_ADDR A, int64_t n' -> two parameters; the flags' address and the stream are the runtime's own."""
    found: list[Parameter] = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        match = re.match(r"(.+?)\s*(\w+)$", part)
        if match and match[2] not in ("fftsAddr", "stream"):
            found.append(Parameter(match[1].strip(), match[2]))
    return tuple(found)


def parse_locals(lines: list[str]) -> tuple[Local, ...]:
    memories = {name: MEMORY_OF[position] for line in lines for position, name in TBUF.findall(line) if position in MEMORY_OF}
    found: list[Local] = []
    for number, line in enumerate(lines, 1):
        match = LOCAL.search(line)
        if match and match[2] in memories and match[3] in SIZES:
            lo = int(match[5])
            found.append(Local(match[1], memories[match[2]], lo, lo + int(match[4]) * SIZES[match[3]], number))
    return tuple(found)


def parse(ascendc: str, name: str) -> Kernel:
    """Finds the kernel in generated code. Refuses when there is none, or more than one."""
    kernels = KERNEL.findall(ascendc)
    if len(kernels) != 1:
        raise FusionError(f"{count(len(kernels), 'kernel')} in the source; one is expected", where=name)
    call = CALL.search(ascendc)
    launched = call is not None and LAUNCH.search(ascendc) is not None
    parameters = parse_parameters(call[1] if call and launched else kernels[0][1])
    vectors = 1 if "KERNEL_TYPE_MIX_AIC_1_1" in ascendc else 2
    return Kernel(kernels[0][0], parameters, launched, vectors, "tl_templates/" in ascendc, parse_locals(ascendc.splitlines()))


def mark_lines(lines: list[str]) -> list[str]:
    """Puts FP_LINE(n) before every statement of the kernel, and FP_LOOP(v) into every loop, without moving a line."""
    marked: list[str] = []
    inside, complete = False, True
    for number, line in enumerate(lines, 1):
        code = line.split("//")[0].strip()
        starts = inside and complete and code and not code.startswith(("#", "}", "{", "case ", "default:", "else"))
        text = f"FP_LINE({number}) {line}" if starts else line
        loop = FOR.search(code) if inside else None
        marked.append(f"{text.rstrip()} FP_LOOP({loop[1]})" if loop else text)
        if "__aicore__" in code and code.endswith("{"):
            inside = True
        elif line.startswith("}"):
            inside = False
        if code and not code.startswith("#"):
            complete = code[-1] in ";{}"
    return marked


def glue(kernel: Kernel) -> str:
    """The function through which the runtime calls the launcher, or the bare kernel of a hand-written file."""
    arguments: list[str] = []
    buffers = scalars = 0
    for parameter in kernel.parameters:
        if parameter.is_buffer:
            arguments.append(f"buffers[{buffers}]")
            buffers += 1
        else:
            arguments.append(f"sim::scalar<{parameter.type}>(scalars[{scalars}])")
            scalars += 1
    head = "\nvoid sim_call(uint8_t** buffers, const std::vector<std::string>& scalars) {\n  (void)buffers; (void)scalars;\n"
    if kernel.has_launcher:
        return f"{head}  call({', '.join([*arguments, 'nullptr'])});\n}}\n"
    return f"{head}  sim::launch(1, [=] {{ {kernel.name}({', '.join([*arguments, '0'])}); }});\n}}\n"


def rewrite(ascendc: str, kernel: Kernel) -> str:
    """The file that g++ compiles: the same lines with marks, the launch as a call, and the glue behind."""
    lines = ["" if OWN_INCLUDES.match(line) else line for line in ascendc.splitlines()]
    lines = [LAUNCH.sub(r"sim::launch(\2, [=] { \1(\3); });", line) for line in lines]
    lines = [line.replace("(uint32_t[]){", "sim::Shape{") for line in lines]
    return "\n".join(mark_lines(lines)) + "\n" + glue(kernel)
