import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def relay():
    @T.prim_func
    def main(
        X: T.Tensor((96, 32), "float16"),
        W: T.Tensor((32, 32), "float16"),
        Y: T.Tensor((96, 32), "float"),
    ):
        with T.Kernel(1, threads=2, is_npu=True):
            x_l1 = T.alloc_shared((32, 32), "float16")
            w_l1 = T.alloc_shared((32, 32), "float16")
            y_l0c = T.alloc_fragment((32, 32), "float")
            y_ub = T.alloc_shared((32, 32), "float")
            T.copy(W[0:32, 0:32], w_l1)
            T.copy(X[0:32, 0:32], x_l1)
            T.gemm_v0(x_l1, w_l1, y_l0c, init=True)
            T.copy(y_l0c, y_ub)
            T.tile.relu(y_ub, y_ub)
            T.copy(y_ub, Y[0:32, 0:32])

    return main
