import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def odd_sum():
    @T.prim_func
    def main(
        A: T.Tensor((32, 72), "float16"),
        B: T.Tensor((72, 48), "float16"),
        C: T.Tensor((32, 48), "float"),
    ):
        with T.Kernel(1, is_npu=True) as (_cid, _vid):
            a_l1 = T.alloc_L1((32, 72), "float16")
            b_l1 = T.alloc_L1((72, 48), "float16")
            c_l0c = T.alloc_L0C((32, 48), "float")
            T.copy(A[0:32, 0:72], a_l1)
            T.copy(B[0:72, 0:48], b_l1)
            T.gemm_v0(a_l1, b_l1, c_l0c, init=True)
            T.copy(c_l0c, C[0:32, 0:48])

    return main
