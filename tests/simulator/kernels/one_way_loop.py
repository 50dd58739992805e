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
def one_way_loop():
    @T.prim_func
    def main(
        A: T.Tensor((512, 64), "float16"),
        B: T.Tensor((64, 64), "float16"),
        C: T.Tensor((512, 64), "float"),
    ):
        with T.Kernel(1, threads=2, is_npu=True) as (cid):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float")

            s = T.alloc_shared((64, 64), "float")
            r = T.alloc_shared((64, 64), "float")
            T.copy(B[0:64, 0:64], b)
            for i in T.serial(8):
                T.copy(A[i * 64 : i * 64 + 64, 0:64], a)
                T.gemm_v0(a, b, c, init=True)
                T.copy(c, s)
                T.tile.add(r, s, s)
                T.copy(r, C[i * 64 : i * 64 + 64, 0:64])

    return main


if __name__ == "__main__":
    print(one_way_loop().get_kernel_source())
