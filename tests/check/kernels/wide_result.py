import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def wide_result():
    @T.prim_func
    def main(
        A: T.Tensor((128, 32), "float16"),
        B: T.Tensor((32, 384), "float16"),
        C: T.Tensor((128, 384), "float"),
    ):
        with T.Kernel(1, is_npu=True) as (_cid, _vid):
            a_l1 = T.alloc_L1((128, 32), "float16")
            b_l1 = T.alloc_L1((32, 384), "float16")
            c_l0c = T.alloc_L0C((128, 384), "float")
            T.copy(A[0:128, 0:32], a_l1)
            T.copy(B[0:32, 0:384], b_l1)
            T.gemm_v0(a_l1, b_l1, c_l0c, init=True)
            T.copy(c_l0c, C[0:128, 0:384])

    return main
