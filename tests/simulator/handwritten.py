"""Small hand-written Ascend C kernels: no compiler is needed to run them."""

from __future__ import annotations

from collections.abc import Mapping

BYTES = {
    "half": 2,
    "bfloat16_t": 2,
    "float": 4,
    "int8_t": 1,
    "uint8_t": 1,
    "int16_t": 2,
    "uint16_t": 2,
    "int32_t": 4,
    "uint32_t": 4,
    "int64_t": 8,
}

HEAD = """#include "kernel_operator.h"
extern "C" __global__ __aicore__ void test_kernel({parameters}, uint64_t fftsAddr) {{
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_{vectors});
  AscendC::TPipe pipe;
{globals}
  AscendC::TBuf<AscendC::TPosition::A2> ascend_l0a;
  pipe.InitBuffer(ascend_l0a, 65536);
  AscendC::TBuf<AscendC::TPosition::B2> ascend_l0b;
  pipe.InitBuffer(ascend_l0b, 65536);
  AscendC::TBuf<AscendC::TPosition::A1> ascend_l1;
  pipe.InitBuffer(ascend_l1, 524032);
  AscendC::TBuf<AscendC::TPosition::CO1> ascend_l0c;
  pipe.InitBuffer(ascend_l0c, 131072);
  AscendC::TBuf<AscendC::TPosition::VECCALC> ascend_ub;
  pipe.InitBuffer(ascend_ub, 196352);
  auto cid = AscendC::GetBlockIdx();
  if ASCEND_IS_AIV {{
    cid = cid / {vectors};
  }}
{locals}
"""


def kernel(globals_: Mapping[str, str], ub: Mapping[str, tuple[str, int]], aiv: str = "", aic: str = "", *, vectors: int = 1) -> str:
    """A kernel with GM tensors `globals_` (name -> type), UB buffers `ub` (name -> type, elements) one after another, and two bodies."""
    parameters = ", ".join(f"GM_ADDR {name}_handle" for name in globals_)
    tensors = "\n".join(
        f"  AscendC::GlobalTensor<{ctype}> {name};\n  {name}.SetGlobalBuffer((__gm__ {ctype}*){name}_handle);"
        for name, ctype in globals_.items()
    )
    at, buffers = 0, []
    for name, (ctype, count) in ub.items():
        buffers.append(f"  auto {name} = ascend_ub.GetWithOffset<{ctype}>({count}, {at});")
        at += (count * BYTES[ctype] + 31) // 32 * 32
    text = HEAD.format(parameters=parameters, vectors=vectors, globals=tensors, locals="\n".join(buffers))
    for unit, body in (("AIC", aic), ("AIV", aiv)):
        if body:
            text += f"  if ASCEND_IS_{unit} {{\n" + "\n".join("    " + line for line in body.strip().splitlines()) + "\n  }\n"
    return text + "}\n"


def flag(event: str, number: int = 0) -> str:
    return f"AscendC::SetFlag<AscendC::HardEvent::{event}>({number});\nAscendC::WaitFlag<AscendC::HardEvent::{event}>({number});"


def load(local: str, tensor: str, count: int, ctype: str) -> str:
    """UB <- GM, `count` contiguous elements."""
    size = count * BYTES[ctype]
    return (
        f"AscendC::DataCopyPad({local}, {tensor}, AscendC::DataCopyExtParams(1, {size}, 0, 0, 0), "
        f"AscendC::DataCopyPadExtParams<{ctype}>(false, 0, 0, 0));"
    )


def store(tensor: str, local: str, count: int, ctype: str) -> str:
    return f"AscendC::DataCopyPad({tensor}, {local}, AscendC::DataCopyExtParams(1, {count * BYTES[ctype]}, 0, 0, 0));"


BARRIER = "AscendC::PipeBarrier<PIPE_ALL>();"


def map_kernel(
    inputs: Mapping[str, tuple[str, int]], output: tuple[str, int], body: str, scratch: Mapping[str, tuple[str, int]] | None = None
) -> str:
    """Loads every input into UB under its lower-case name, runs `body`, and stores `out` to OUT, all in order."""
    globals_ = {name: ctype for name, (ctype, _) in inputs.items()} | {"OUT": output[0]}
    ub = {name.lower(): spec for name, spec in inputs.items()} | {"out": output} | dict(scratch or {})
    loads = "\n".join(load(name.lower(), name, count, ctype) for name, (ctype, count) in inputs.items())
    steps = "\n".join(line if line.endswith(("{", "}")) else f"{line}\n{BARRIER}" for line in body.strip().splitlines())
    return kernel(globals_, ub, f"{loads}\n{BARRIER}\n{steps}\n{BARRIER}\n{store('OUT', 'out', output[1], output[0])}")
