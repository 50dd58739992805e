"""Flash attention forward, one head: o = softmax(q k^T * scale) v, with the online softmax of one query tile a block."""

import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def flash_attention(seq_len=256, dim=64, block_M=64, block_N=64):
    scale = 1.0 / dim**0.5
    half_M = block_M // 2
    blocks = seq_len // block_M

    @T.prim_func
    def main(
        Q: T.Tensor((seq_len, dim), "float16"),
        K: T.Tensor((seq_len, dim), "float16"),
        V: T.Tensor((seq_len, dim), "float16"),
        workspace_s: T.Tensor((blocks, block_M, block_N), "float"),
        workspace_p: T.Tensor((blocks, block_M, block_N), "float16"),
        workspace_o: T.Tensor((blocks, block_M, dim), "float"),
        Output: T.Tensor((seq_len, dim), "float16"),
    ):
        with T.Kernel(blocks, is_npu=True) as (cid, vid):
            q_l1 = T.alloc_shared((block_M, dim), "float16")
            k_l1 = T.alloc_shared((block_N, dim), "float16")
            v_l1 = T.alloc_shared((block_N, dim), "float16")
            p_l1 = T.alloc_shared((block_M, block_N), "float16")
            s_l0c = T.alloc_fragment((block_M, block_N), "float")
            o_l0c = T.alloc_fragment((block_M, dim), "float")

            s_ub = T.alloc_shared((half_M, block_N), "float")
            p_ub = T.alloc_shared((half_M, block_N), "float16")
            row_ub = T.alloc_shared((half_M, block_N), "float")
            o_ub = T.alloc_shared((half_M, dim), "float")
            acc_ub = T.alloc_shared((half_M, dim), "float")
            scaled_ub = T.alloc_shared((half_M, dim), "float")
            out_ub = T.alloc_shared((half_M, dim), "float16")
            max_ub = T.alloc_shared((half_M, 1), "float")
            old_ub = T.alloc_shared((half_M, 1), "float")
            sum_ub = T.alloc_shared((half_M, 1), "float")
            part_ub = T.alloc_shared((half_M, 1), "float")

            T.copy(Q[cid * block_M, 0], q_l1)
            T.tile.fill(max_ub, -1.0e30)
            T.tile.fill(sum_ub, 0.0)
            T.tile.fill(acc_ub, 0.0)
            for k in T.serial(seq_len // block_N):
                # s = q k^T
                T.copy(K[k * block_N, 0], k_l1)
                T.gemm_v0(q_l1, k_l1, s_l0c, transpose_B=True, init=True)
                T.copy(s_l0c, workspace_s[cid, 0:block_M, 0:block_N])
                T.copy(workspace_s[cid, vid * half_M : vid * half_M + half_M, 0:block_N], s_ub)
                T.tile.mul(s_ub, s_ub, scale)
                # m' = max(m, rowmax s); p = exp(s - m'); l = l * exp(m - m') + rowsum p
                T.copy(max_ub, old_ub)
                T.reduce_max(s_ub, part_ub, dim=-1)
                T.tile.max(max_ub, old_ub, part_ub)
                T.tile.broadcast(row_ub, max_ub)
                T.tile.sub(s_ub, s_ub, row_ub)
                T.tile.exp(s_ub, s_ub)
                T.tile.sub(old_ub, old_ub, max_ub)
                T.tile.exp(old_ub, old_ub)
                T.reduce_sum(s_ub, part_ub, dim=-1)
                T.tile.mul(sum_ub, sum_ub, old_ub)
                T.tile.add(sum_ub, sum_ub, part_ub)
                T.copy(s_ub, p_ub)
                T.copy(p_ub, workspace_p[cid, vid * half_M : vid * half_M + half_M, 0:block_N])
                # acc = acc * exp(m - m') + p v
                T.copy(workspace_p[cid, 0:block_M, 0:block_N], p_l1)
                T.copy(V[k * block_N, 0], v_l1)
                T.gemm_v0(p_l1, v_l1, o_l0c, init=True)
                T.copy(o_l0c, workspace_o[cid, 0:block_M, 0:dim])
                T.tile.broadcast(scaled_ub, old_ub)
                T.tile.mul(acc_ub, acc_ub, scaled_ub)
                T.copy(workspace_o[cid, vid * half_M : vid * half_M + half_M, 0:dim], o_ub)
                T.tile.add(acc_ub, acc_ub, o_ub)
            # o = acc / l
            T.tile.broadcast(scaled_ub, sum_ub)
            T.tile.div(acc_ub, acc_ub, scaled_ub)
            T.copy(acc_ub, out_ub)
            T.copy(out_ub, Output[cid * block_M + vid * half_M, 0])

    return main
