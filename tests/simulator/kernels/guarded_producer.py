# ruff: noqa: E741
import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def guarded_producer():
    @T.prim_func
    def main(
        A: T.Tensor((256, 64), "float16"),
        B: T.Tensor((64, 64), "float16"),
        workspace_1: T.Tensor((4, 64, 64), "float"),
        O: T.Tensor((256, 64), "float"),
    ):
        with T.Kernel(4, is_npu=True) as (cid, vid):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float")

            s = T.alloc_shared((32, 64), "float")
            T.copy(B[0:64, 0:64], b)
            if cid < 3:
                T.copy(A[cid * 64 : cid * 64 + 64, 0:64], a)
                T.gemm_v0(a, b, c, init=True)
                T.copy(c, workspace_1[cid, 0:64, 0:64])
            T.copy(workspace_1[cid, vid * 32 : vid * 32 + 32, 0:64], s)
            T.tile.add(s, s, s)
            T.copy(s, O[cid * 64 + vid * 32 : cid * 64 + vid * 32 + 32, 0:64])

    return main


if __name__ == "__main__":
    print(guarded_producer().get_kernel_source())
