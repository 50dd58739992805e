import tilelang.language as T


@T.prim_func
def add(A: T.Tensor((128, 128), "float"), B: T.Tensor((128, 128), "float"), C: T.Tensor((128, 128), "float")):
    with T.Kernel(1, is_npu=True) as (_cid, _vid):
        a_ub = T.alloc_shared((128, 128), "float")
        b_ub = T.alloc_shared((128, 128), "float")
        c_ub = T.alloc_shared((128, 128), "float")
        T.copy(A[0:128, 0:128], a_ub)
        T.copy(B[0:128, 0:128], b_ub)
        T.tile.add(c_ub, a_ub, b_ub)
        T.copy(c_ub, C[0:128, 0:128])
