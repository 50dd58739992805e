import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def row_update():
    @T.prim_func
    def main(
        A: T.Tensor((32, 32), "float16"),
        B: T.Tensor((32, 48), "float16"),
        row: T.Tensor((32,), "float"),
        C: T.Tensor((32, 48), "float"),
    ):
        with T.Kernel(1, threads=1, is_npu=True):
            a_l1 = T.alloc_shared((32, 32), "float16")
            b_l1 = T.alloc_shared((32, 48), "float16")
            c_l0c = T.alloc_fragment((32, 48), "float")
            c_ub = T.alloc_shared((32, 48), "float")
            row_ub = T.alloc_shared((32,), "float")
            T.copy(row[0:32], row_ub)
            T.copy(A[0:32, 0:32], a_l1)
            T.copy(B[0:32, 0:48], b_l1)
            T.gemm_v0(a_l1, b_l1, c_l0c, init=True)
            T.copy(c_l0c, c_ub)
            for i, j in T.Parallel(32, 48):
                c_ub[i, j] = c_ub[i, j] * row_ub[i]
            T.copy(c_ub, C[0:32, 0:48])

    return main
