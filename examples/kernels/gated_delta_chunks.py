"""The chunk loop of a gated delta rule, one head: o = q h, h = h * decay + k^T (v - k h), the state h carried from chunk to chunk."""

import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_COMBINE: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_CV_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def gated_delta_chunks(heads=2, chunks=4, chunk=64, dim_k=64, dim_v=64, decay=0.9):
    half_C = chunk // 2
    half_K = dim_k // 2
    length = chunks * chunk

    @T.prim_func
    def main(
        Q: T.Tensor((heads, length, dim_k), "float16"),
        K: T.Tensor((heads, length, dim_k), "float16"),
        V: T.Tensor((heads, length, dim_v), "float16"),
        workspace_h: T.Tensor((heads, dim_k, dim_v), "float16"),
        workspace_kh: T.Tensor((heads, chunk, dim_v), "float"),
        workspace_u: T.Tensor((heads, chunk, dim_v), "float16"),
        workspace_dh: T.Tensor((heads, dim_k, dim_v), "float"),
        Output: T.Tensor((heads, length, dim_v), "float"),
    ):
        with T.Kernel(heads, is_npu=True) as (cid, vid):
            q_l1 = T.alloc_shared((chunk, dim_k), "float16")
            k_l1 = T.alloc_shared((chunk, dim_k), "float16")
            h_l1 = T.alloc_shared((dim_k, dim_v), "float16")
            u_l1 = T.alloc_shared((chunk, dim_v), "float16")
            o_l0c = T.alloc_fragment((chunk, dim_v), "float")
            kh_l0c = T.alloc_fragment((chunk, dim_v), "float")
            dh_l0c = T.alloc_fragment((dim_k, dim_v), "float")

            h_ub = T.alloc_shared((half_K, dim_v), "float")
            dh_ub = T.alloc_shared((half_K, dim_v), "float")
            h16_ub = T.alloc_shared((half_K, dim_v), "float16")
            v16_ub = T.alloc_shared((half_C, dim_v), "float16")
            v_ub = T.alloc_shared((half_C, dim_v), "float")
            kh_ub = T.alloc_shared((half_C, dim_v), "float")
            u16_ub = T.alloc_shared((half_C, dim_v), "float16")

            T.tile.fill(h_ub, 0.0)
            for i in T.serial(chunks):
                T.copy(h_ub, h16_ub)
                T.copy(h16_ub, workspace_h[cid, vid * half_K : vid * half_K + half_K, 0:dim_v])
                # o = q h
                T.copy(workspace_h[cid, 0:dim_k, 0:dim_v], h_l1)
                T.copy(Q[cid, i * chunk : i * chunk + chunk, 0:dim_k], q_l1)
                T.gemm_v0(q_l1, h_l1, o_l0c, init=True)
                T.copy(o_l0c, Output[cid, i * chunk : i * chunk + chunk, 0:dim_v])
                # u = v - k h
                T.copy(K[cid, i * chunk : i * chunk + chunk, 0:dim_k], k_l1)
                T.gemm_v0(k_l1, h_l1, kh_l0c, init=True)
                T.copy(kh_l0c, workspace_kh[cid, 0:chunk, 0:dim_v])
                T.copy(V[cid, i * chunk + vid * half_C : i * chunk + vid * half_C + half_C, 0:dim_v], v16_ub)
                T.copy(v16_ub, v_ub)
                T.copy(workspace_kh[cid, vid * half_C : vid * half_C + half_C, 0:dim_v], kh_ub)
                T.tile.sub(v_ub, v_ub, kh_ub)
                T.copy(v_ub, u16_ub)
                T.copy(u16_ub, workspace_u[cid, vid * half_C : vid * half_C + half_C, 0:dim_v])
                # h = h * decay + k^T u
                T.copy(workspace_u[cid, 0:chunk, 0:dim_v], u_l1)
                T.gemm_v0(k_l1, u_l1, dh_l0c, transpose_A=True, init=True)
                T.copy(dh_l0c, workspace_dh[cid, 0:dim_k, 0:dim_v])
                T.copy(workspace_dh[cid, vid * half_K : vid * half_K + half_K, 0:dim_v], dh_ub)
                T.tile.mul(h_ub, h_ub, decay)
                T.tile.add(h_ub, h_ub, dh_ub)

    return main
