import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def relay_add(blocks=2):
    @T.prim_func
    def main(
        A: T.Tensor((blocks * 64, 64), "float16"),
        B: T.Tensor((64, 64), "float16"),
        D: T.Tensor((blocks * 64, 64), "float"),
        C: T.Tensor((blocks * 64, 64), "float"),
    ):
        with T.Kernel(blocks, threads=2, is_npu=True) as (cid):
            a_l1 = T.alloc_shared((64, 64), "float16")
            b_l1 = T.alloc_shared((64, 64), "float16")
            acc_l0c = T.alloc_fragment((64, 64), "float")
            s_ub = T.alloc_shared((64, 64), "float")
            d_ub = T.alloc_shared((64, 64), "float")
            T.copy(A[cid * 64, 0], a_l1)
            T.copy(B[0:64, 0:64], b_l1)
            T.copy(D[cid * 64, 0], d_ub)
            T.gemm_v0(a_l1, b_l1, acc_l0c, init=True)
            T.copy(acc_l0c, s_ub)
            T.tile.add(s_ub, s_ub, d_ub)
            T.copy(s_ub, C[cid * 64, 0])

    return main
