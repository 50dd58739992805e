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
def cyclic_loop():
    @T.prim_func
    def main(
        Q: T.Tensor((64, 64), "float16"),
        K: T.Tensor((256, 64), "float16"),
        workspace_1: T.Tensor((1, 64, 64), "float"),
        workspace_2: T.Tensor((1, 64, 64), "float16"),
        O: T.Tensor((64, 64), "float"),
    ):
        with T.Kernel(1, is_npu=True) as (cid, vid):
            q = T.alloc_shared((64, 64), "float16")
            k = T.alloc_shared((64, 64), "float16")
            p = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float")
            o = T.alloc_fragment((64, 64), "float")
            s = T.alloc_shared((32, 64), "float")
            h = T.alloc_shared((32, 64), "float16")
            T.copy(Q[0:64, 0:64], q)
            for i in T.serial(4):
                T.copy(K[i * 64 : i * 64 + 64, 0:64], k)
                T.gemm_v0(q, k, c, transpose_B=True, init=True)
                T.copy(c, workspace_1[cid, 0:64, 0:64])
                T.copy(workspace_1[cid, vid * 32 : vid * 32 + 32, 0:64], s)
                T.tile.exp(s, s)
                T.copy(s, h)
                T.copy(h, workspace_2[cid, vid * 32 : vid * 32 + 32, 0:64])
                T.copy(workspace_2[cid, 0:64, 0:64], p)
                T.gemm_v0(p, k, o, init=(i == 0))
            T.copy(o, O[0:64, 0:64])

    return main


if __name__ == "__main__":
    print(cyclic_loop().get_kernel_source())
