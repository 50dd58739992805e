"""GEMM with an epilogue in the same kernel: c = relu(a b + bias), the sum in slices of block_K, rows of any number."""

import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def gemm_epilogue(N=128, K=256, block_M=64, block_N=64, block_K=64):
    M = T.symbolic("M")
    n_blocks = N // block_N
    half_M = block_M // 2

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        bias: T.Tensor((1, N), "float"),
        workspace_c: T.Tensor((T.ceildiv(M, block_M) * n_blocks, block_M, block_N), "float"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(M, block_M) * n_blocks, is_npu=True) as (cid, vid):
            bx = cid // n_blocks
            by = cid % n_blocks
            a_l1 = T.alloc_shared((block_M, block_K), "float16")
            b_l1 = T.alloc_shared((block_K, block_N), "float16")
            c_l0c = T.alloc_fragment((block_M, block_N), "float")
            c_ub = T.alloc_shared((half_M, block_N), "float")
            bias_ub = T.alloc_shared((1, block_N), "float")
            rows_ub = T.alloc_shared((half_M, block_N), "float")
            out_ub = T.alloc_shared((half_M, block_N), "float16")

            # c = a b
            for k in T.serial(K // block_K):
                T.copy(A[bx * block_M, k * block_K], a_l1)
                T.copy(B[k * block_K, by * block_N], b_l1)
                T.gemm_v0(a_l1, b_l1, c_l0c, init=(k == 0))
            T.copy(c_l0c, workspace_c[cid, 0:block_M, 0:block_N])
            # relu(c + bias)
            T.copy(bias[0, by * block_N], bias_ub)
            T.tile.broadcast(rows_ub, bias_ub)
            T.copy(workspace_c[cid, vid * half_M : vid * half_M + half_M, 0:block_N], c_ub)
            T.tile.add(c_ub, c_ub, rows_ub)
            T.tile.relu(c_ub, c_ub)
            T.copy(c_ub, out_ub)
            T.copy(out_ub, C[bx * block_M + vid * half_M, by * block_N])

    return main
