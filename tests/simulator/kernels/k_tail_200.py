# ruff: noqa: RUF059
import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def k_tail_200():
    @T.prim_func
    def main(
        A: T.Tensor((64, 200), "float16"),
        B: T.Tensor((200, 128), "float16"),
        C: T.Tensor((64, 128), "float"),
    ):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            a = T.alloc_L1((64, 200), "float16")
            b = T.alloc_L1((200, 128), "float16")
            c = T.alloc_L0C((64, 128), "float")
            T.copy(A[0:64, 0:200], a)
            T.copy(B[0:200, 0:128], b)
            T.gemm_v0(a, b, c, init=True)
            T.copy(c, C[0:64, 0:128])

    return main


if __name__ == "__main__":
    print(k_tail_200().get_kernel_source())
