import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def twelve_handoffs():
    @T.prim_func
    def main(
        X: T.Tensor((16, 16), "float16"),
        Y: T.Tensor((192, 16), "float"),
    ):
        with T.Kernel(1, threads=2, is_npu=True):
            x_l1 = T.alloc_shared((16, 16), "float16")
            T.copy(X[0:16, 0:16], x_l1)
            y0_l0c = T.alloc_fragment((16, 16), "float")
            y0_ub = T.alloc_shared((16, 16), "float")
            T.gemm_v0(x_l1, x_l1, y0_l0c, init=True)
            T.copy(y0_l0c, y0_ub)
            T.tile.exp(y0_ub, y0_ub)
            T.copy(y0_ub, Y[0:16, 0:16])
            y1_l0c = T.alloc_fragment((16, 16), "float")
            y1_ub = T.alloc_shared((16, 16), "float")
            T.gemm_v0(x_l1, x_l1, y1_l0c, init=True)
            T.copy(y1_l0c, y1_ub)
            T.tile.exp(y1_ub, y1_ub)
            T.copy(y1_ub, Y[16:32, 0:16])
            y2_l0c = T.alloc_fragment((16, 16), "float")
            y2_ub = T.alloc_shared((16, 16), "float")
            T.gemm_v0(x_l1, x_l1, y2_l0c, init=True)
            T.copy(y2_l0c, y2_ub)
            T.tile.exp(y2_ub, y2_ub)
            T.copy(y2_ub, Y[32:48, 0:16])
            y3_l0c = T.alloc_fragment((16, 16), "float")
            y3_ub = T.alloc_shared((16, 16), "float")
            T.gemm_v0(x_l1, x_l1, y3_l0c, init=True)
            T.copy(y3_l0c, y3_ub)
            T.tile.exp(y3_ub, y3_ub)
            T.copy(y3_ub, Y[48:64, 0:16])
            y4_l0c = T.alloc_fragment((16, 16), "float")
            y4_ub = T.alloc_shared((16, 16), "float")
            T.gemm_v0(x_l1, x_l1, y4_l0c, init=True)
            T.copy(y4_l0c, y4_ub)
            T.tile.exp(y4_ub, y4_ub)
            T.copy(y4_ub, Y[64:80, 0:16])
            y5_l0c = T.alloc_fragment((16, 16), "float")
            y5_ub = T.alloc_shared((16, 16), "float")
            T.gemm_v0(x_l1, x_l1, y5_l0c, init=True)
            T.copy(y5_l0c, y5_ub)
            T.tile.exp(y5_ub, y5_ub)
            T.copy(y5_ub, Y[80:96, 0:16])
            y6_l0c = T.alloc_fragment((16, 16), "float")
            y6_ub = T.alloc_shared((16, 16), "float")
            T.gemm_v0(x_l1, x_l1, y6_l0c, init=True)
            T.copy(y6_l0c, y6_ub)
            T.tile.exp(y6_ub, y6_ub)
            T.copy(y6_ub, Y[96:112, 0:16])
            y7_l0c = T.alloc_fragment((16, 16), "float")
            y7_ub = T.alloc_shared((16, 16), "float")
            T.gemm_v0(x_l1, x_l1, y7_l0c, init=True)
            T.copy(y7_l0c, y7_ub)
            T.tile.exp(y7_ub, y7_ub)
            T.copy(y7_ub, Y[112:128, 0:16])
            y8_l0c = T.alloc_fragment((16, 16), "float")
            y8_ub = T.alloc_shared((16, 16), "float")
            T.gemm_v0(x_l1, x_l1, y8_l0c, init=True)
            T.copy(y8_l0c, y8_ub)
            T.tile.exp(y8_ub, y8_ub)
            T.copy(y8_ub, Y[128:144, 0:16])
            y9_l0c = T.alloc_fragment((16, 16), "float")
            y9_ub = T.alloc_shared((16, 16), "float")
            T.gemm_v0(x_l1, x_l1, y9_l0c, init=True)
            T.copy(y9_l0c, y9_ub)
            T.tile.exp(y9_ub, y9_ub)
            T.copy(y9_ub, Y[144:160, 0:16])
            y10_l0c = T.alloc_fragment((16, 16), "float")
            y10_ub = T.alloc_shared((16, 16), "float")
            T.gemm_v0(x_l1, x_l1, y10_l0c, init=True)
            T.copy(y10_l0c, y10_ub)
            T.tile.exp(y10_ub, y10_ub)
            T.copy(y10_ub, Y[160:176, 0:16])
            y11_l0c = T.alloc_fragment((16, 16), "float")
            y11_ub = T.alloc_shared((16, 16), "float")
            T.gemm_v0(x_l1, x_l1, y11_l0c, init=True)
            T.copy(y11_l0c, y11_ub)
            T.tile.exp(y11_ub, y11_ub)
            T.copy(y11_ub, Y[176:192, 0:16])

    return main
