import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def power():
    @T.prim_func
    def main(
        A: T.Tensor((32, 32), "float16"),
        workspace_y: T.Tensor((32, 32), "float"),
        workspace_x: T.Tensor((32, 32), "float16"),
        Y: T.Tensor((32, 32), "float16"),
    ):
        with T.Kernel(1, is_npu=True) as (_cid, vid):
            a_l1 = T.alloc_shared((32, 32), "float16")
            x_l1 = T.alloc_shared((32, 32), "float16")
            y_l0c = T.alloc_fragment((32, 32), "float")
            y_ub = T.alloc_shared((16, 32), "float")
            x_ub = T.alloc_shared((16, 32), "float16")
            T.copy(A[0:32, 0:32], a_l1)
            T.copy(A[vid * 16 : vid * 16 + 16, 0:32], x_ub)
            for _i in T.serial(3):
                T.copy(x_ub, workspace_x[vid * 16 : vid * 16 + 16, 0:32])
                T.copy(workspace_x[0:32, 0:32], x_l1)
                T.gemm_v0(x_l1, a_l1, y_l0c, init=True)
                T.copy(y_l0c, workspace_y[0:32, 0:32])
                T.copy(workspace_y[vid * 16 : vid * 16 + 16, 0:32], y_ub)
                T.copy(y_ub, x_ub)
            T.copy(x_ub, Y[vid * 16 : vid * 16 + 16, 0:32])

    return main
