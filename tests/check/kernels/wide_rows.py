import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def wide_rows():
    @T.prim_func
    def main(
        X: T.Tensor((4, 32768), "float16"),
        Y: T.Tensor((4, 32768), "float16"),
    ):
        with T.Kernel(2, is_npu=True) as (cid, vid):
            x_ub = T.alloc_shared((1, 32768), "float16")
            e_ub = T.alloc_shared((1, 32768), "float16")
            y_ub = T.alloc_shared((1, 32768), "float16")
            T.copy(X[cid * 2 + vid, 0], x_ub)
            T.tile.exp(e_ub, x_ub)
            T.tile.add(y_ub, e_ub, x_ub)
            T.copy(y_ub, Y[cid * 2 + vid, 0])

    return main
