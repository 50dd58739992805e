import tilelang
import tilelang.language as T


@tilelang.jit(out_idx=[1], workspace_idx=2)
def open_rows(columns=64, dtype="float"):
    rows = T.symbolic("rows")

    @T.prim_func
    def main(
        A: T.Tensor((rows, columns), dtype),
        B: T.Tensor((rows, columns), dtype),
        scratch: T.Tensor((64, 64), dtype),
        count: T.int32,
    ):
        with T.Kernel(rows // 64, is_npu=True) as (cid, vid):
            a_ub = T.alloc_ub((32, columns), dtype)
            T.copy(A[cid * 64 + vid * 32, 0], a_ub)
            T.tile.add(a_ub, a_ub, a_ub)
            T.copy(a_ub, B[cid * 64 + vid * 32, 0])

    return main
