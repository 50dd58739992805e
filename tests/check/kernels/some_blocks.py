import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def some_blocks():
    @T.prim_func
    def main(
        X: T.Tensor((96, 32), "float16"),
        W: T.Tensor((32, 32), "float16"),
        workspace_y: T.Tensor((3, 32, 32), "float"),
        Y: T.Tensor((96, 32), "float"),
    ):
        with T.Kernel(3, is_npu=True) as (cid, vid):
            x_l1 = T.alloc_shared((32, 32), "float16")
            w_l1 = T.alloc_shared((32, 32), "float16")
            y_l0c = T.alloc_fragment((32, 32), "float")
            y_ub = T.alloc_shared((16, 32), "float")
            T.copy(W[0:32, 0:32], w_l1)
            T.copy(X[cid * 32, 0], x_l1)
            if cid > 0:
                T.gemm_v0(x_l1, w_l1, y_l0c, init=True)
                T.copy(y_l0c, workspace_y[cid, 0:32, 0:32])
            T.copy(workspace_y[cid, vid * 16 : vid * 16 + 16, 0:32], y_ub)
            T.tile.abs(y_ub, y_ub)
            T.copy(y_ub, Y[cid * 32 + vid * 16, 0])

    return main
