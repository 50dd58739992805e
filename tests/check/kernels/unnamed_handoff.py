import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def unnamed_handoff():
    @T.prim_func
    def main(
        X: T.Tensor((32, 48), "float16"),
        W: T.Tensor((48, 64), "float16"),
        staged: T.Tensor((32, 48), "float16"),
        Y: T.Tensor((32, 64), "float"),
    ):
        with T.Kernel(1, is_npu=True) as (_cid, vid):
            x_ub = T.alloc_shared((16, 48), "float16")
            x_l1 = T.alloc_shared((32, 48), "float16")
            w_l1 = T.alloc_shared((48, 64), "float16")
            y_l0c = T.alloc_fragment((32, 64), "float")
            T.copy(X[vid * 16 : vid * 16 + 16, 0:48], x_ub)
            T.tile.mul(x_ub, x_ub, 2.0)
            T.copy(x_ub, staged[vid * 16 : vid * 16 + 16, 0:48])
            T.copy(W[0:48, 0:64], w_l1)
            T.copy(staged[0:32, 0:48], x_l1)
            T.gemm_v0(x_l1, w_l1, y_l0c, init=True)
            T.copy(y_l0c, Y[0:32, 0:64])

    return main
