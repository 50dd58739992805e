# ruff: noqa: F841
import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def broadcast_reload():
    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"),
        B: T.Tensor((64, 64), "float16"),
        R: T.Tensor((64,), "float"),
        C: T.Tensor((64, 64), "float"),
    ):
        with T.Kernel(1, threads=1, is_npu=True) as (cid):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float")

            s = T.alloc_shared((64, 64), "float")
            r = T.alloc_shared((64,), "float")
            T.copy(R[0:64], r)
            T.copy(A[0:64, 0:64], a)
            T.copy(B[0:64, 0:64], b)
            T.gemm_v0(a, b, c, init=True)
            T.copy(c, s)
            for i, j in T.Parallel(64, 64):
                s[i, j] = s[i, j] - r[i]
            T.copy(s, C[0:64, 0:64])

    return main


if __name__ == "__main__":
    print(broadcast_reload().get_kernel_source())
