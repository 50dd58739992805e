# ruff: noqa: F841
import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def f():
    @T.prim_func
    def main(
        A: T.Tensor((64, 128), "int8"),
        B: T.Tensor((128, 64), "int8"),
        C: T.Tensor((64, 64), "int32"),
    ):
        with T.Kernel(1, threads=1, is_npu=True) as (cid):
            a = T.alloc_L1((64, 128), "int8")
            b = T.alloc_L1((128, 64), "int8")
            c = T.alloc_L0C((64, 64), "int32")
            T.copy(A[0:64, 0:128], a)
            T.copy(B[0:128, 0:64], b)
            T.gemm_v0(a, b, c, transpose_B=False, init=True)
            T.copy(c, C[0:64, 0:64])

    return main


if __name__ == "__main__":
    print(f().get_kernel_source())
