"""The timeline against latencies that no number was fitted to: python benchmarks/unseen.py.

GEMM: published for 24-core chips. The kernel here is what such kernels share: one persistent block a core, tiles of 128 x 256 in L0C, steps
of 64 along K, two slots of L1 and L0 with a flag each, written in Ascend C, since the compiler's own product never overlaps its loads.
"""

from __future__ import annotations

from fusion.device import load
from fusion.simulator import Buffer
from fusion.timeline.launch import time_launch
from fusion.timeline.record import outline
from fusion.timeline.report import kernel_time

MEASURED = ((1536, "910C", 38.8), (3072, "910C", 206.7), (6144, "910C", 1506.0), (8192, "910B2", 3900.0))  # size, device, us

GEMM = """#include "tl_templates/ascend/common.h"
#include "acl/acl.h"
#include <runtime/rt_ffts.h>
using namespace Catlass;

extern "C" __global__ __aicore__ void gemm_kernel(GM_ADDR A_handle, GM_ADDR B_handle, GM_ADDR C_handle, uint64_t fftsAddr) {
  KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2);
  AscendC::TPipe pipe;
  AscendC::GlobalTensor<half> A;
  A.SetGlobalBuffer((__gm__ half*)A_handle);
  AscendC::GlobalTensor<half> B;
  B.SetGlobalBuffer((__gm__ half*)B_handle);
  AscendC::GlobalTensor<half> C;
  C.SetGlobalBuffer((__gm__ half*)C_handle);
  AscendC::TBuf<AscendC::TPosition::A2> ascend_l0a; pipe.InitBuffer(ascend_l0a, 65536);
  AscendC::TBuf<AscendC::TPosition::B2> ascend_l0b; pipe.InitBuffer(ascend_l0b, 65536);
  AscendC::TBuf<AscendC::TPosition::A1> ascend_l1; pipe.InitBuffer(ascend_l1, 524032);
  AscendC::TBuf<AscendC::TPosition::CO1> ascend_l0c; pipe.InitBuffer(ascend_l0c, 131072);
  pipe.Destroy();
  auto cid = AscendC::GetBlockIdx();
  auto A_l1 = ascend_l1.GetWithOffset<half>(16384, 0);
  auto B_l1 = ascend_l1.GetWithOffset<half>(32768, 32768);
  auto A_l0 = ascend_l0a.GetWithOffset<half>(16384, 0);
  auto B_l0 = ascend_l0b.GetWithOffset<half>(32768, 0);
  auto acc = ascend_l0c.GetWithOffset<float>(32768, 0);
  if ASCEND_IS_AIC {
    for (int32_t slot = 0; slot < 2; ++slot) {
      AscendC::SetFlag<AscendC::HardEvent::MTE1_MTE2>(slot);
      AscendC::SetFlag<AscendC::HardEvent::M_MTE1>(slot);
    }
    AscendC::SetFlag<AscendC::HardEvent::FIX_M>(0);
    for (int32_t task = cid; task < TASKS; task += CORES) {
      int32_t row = task / COLS * 128, col = task % COLS * 256;
      AscendC::WaitFlag<AscendC::HardEvent::FIX_M>(0);
      for (int32_t k = 0; k < SIZE / 64; ++k) {
        int32_t slot = k % 2;
        AscendC::WaitFlag<AscendC::HardEvent::MTE1_MTE2>(slot);
        tl::ascend::copy_gm_to_l1<half, 128, 64>(A_l1[slot * 8192], A[row * SIZE + k * 64], SIZE, 128, 64, false);
        tl::ascend::copy_gm_to_l1<half, 64, 256>(B_l1[slot * 16384], B[k * 64 * SIZE + col], SIZE, 64, 256, false);
        AscendC::SetFlag<AscendC::HardEvent::MTE2_MTE1>(slot);
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_MTE1>(slot);
        AscendC::WaitFlag<AscendC::HardEvent::M_MTE1>(slot);
        tl::ascend::copy_l1_to_l0a<half, 128, 64>(A_l0[slot * 8192], A_l1[slot * 8192], 128, 64);
        tl::ascend::copy_l1_to_l0b<half, 64, 256>(B_l0[slot * 16384], B_l1[slot * 16384], 64, 256);
        AscendC::SetFlag<AscendC::HardEvent::MTE1_MTE2>(slot);
        AscendC::SetFlag<AscendC::HardEvent::MTE1_M>(slot);
        AscendC::WaitFlag<AscendC::HardEvent::MTE1_M>(slot);
        tl::ascend::mma<half, float, 128, 256>(A_l0[slot * 8192], B_l0[slot * 16384], acc[0], k == 0, 64);
        AscendC::SetFlag<AscendC::HardEvent::M_MTE1>(slot);
      }
      AscendC::SetFlag<AscendC::HardEvent::M_FIX>(0);
      AscendC::WaitFlag<AscendC::HardEvent::M_FIX>(0);
      tl::ascend::copy_l0c_to_gm<float, half, layout::RowMajor, 128, 256, 0>(C[row * SIZE + col], acc[0], SIZE, 128, 256);
      AscendC::SetFlag<AscendC::HardEvent::FIX_M>(0);
    }
    for (int32_t slot = 0; slot < 2; ++slot) {
      AscendC::WaitFlag<AscendC::HardEvent::MTE1_MTE2>(slot);
      AscendC::WaitFlag<AscendC::HardEvent::M_MTE1>(slot);
    }
    AscendC::WaitFlag<AscendC::HardEvent::FIX_M>(0);
  }
}

void gemm_kernel_tiling() {
}

extern "C" void call(uint8_t* A_handle, uint8_t* B_handle, uint8_t* C_handle, aclrtStream stream) {
  uint32_t fftsLen{0};
  uint64_t fftsAddr{0};
  rtGetC2cCtrlAddr(&fftsAddr, &fftsLen);
  gemm_kernel_tiling();
  gemm_kernel<<<CORES, nullptr, stream>>>(A_handle, B_handle, C_handle, fftsAddr);
}
"""


def source(size: int, cores: int) -> str:
    """The Ascend C of C = A B with `size` rows, columns and inner elements, a multiple of 256."""
    numbers = {"SIZE": size, "COLS": size // 256, "TASKS": (size // 128) * (size // 256), "CORES": cores}
    text = GEMM
    for name, value in numbers.items():
        text = text.replace(name, str(value))
    return text


def main() -> None:
    print(f"{'gemm':>6} {'device':8} {'measured us':>12} {'predicted us':>13} {'error':>7}  {'TFLOPS':>6}")
    for size, name, measured in MEASURED:
        device = load(name)
        buffers = [Buffer(n, "float16", (size, size), role="out") for n in "ABC"]
        launched = time_launch(outline(source(size, device.cube_cores), "gemm", buffers), device)
        time = kernel_time("gemm", launched, device)
        print(f"{size:6} {name:8} {measured:12.1f} {time.us:13.1f} {100 * (time.us / measured - 1):6.1f} %  {time.tflops:6.0f}")


if __name__ == "__main__":
    main()
