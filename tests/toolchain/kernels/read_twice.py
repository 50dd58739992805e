import tilelang.language as T


@T.prim_func
def gemm_twice(
    A: T.Tensor((128, 64), "float16"),
    B: T.Tensor((64, 64), "float16"),
    workspace_a: T.Tensor((1, 128, 64), "float16"),
    C: T.Tensor((128, 64), "float"),
):
    with T.Kernel(1, is_npu=True) as (cid, vid):
        a_ub = T.alloc_shared((64, 64), "float16")
        a_l1 = T.alloc_shared((128, 64), "float16")
        b_l1 = T.alloc_shared((64, 64), "float16")
        acc_l0c = T.alloc_fragment((128, 64), "float")
        T.copy(A[vid * 64, 0], a_ub)
        T.copy(a_ub, workspace_a[cid, vid * 64 : vid * 64 + 64, 0:64])
        T.copy(B[0:64, 0:64], b_l1)
        T.copy(workspace_a[cid, 0:128, 0:64], a_l1)
        T.gemm_v0(a_l1, b_l1, acc_l0c, init=True)
        T.copy(workspace_a[cid, 0:128, 0:64], a_l1)
        T.gemm_v0(a_l1, b_l1, acc_l0c, init=False)
        T.copy(acc_l0c, C[0:128, 0:64])
