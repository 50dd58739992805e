"""The best eight of each row with their places, and the maximum of each block of eight: sorting, block reduces and brcb."""

import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[1, 2], pass_configs=pass_configs)
def ranked(rows=4, columns=128):
    @T.prim_func
    def main(
        X: T.Tensor((rows, columns), "float"),
        best: T.Tensor((rows, 16), "float"),
        tops: T.Tensor((rows, columns // 8, 8), "float"),
    ):
        with T.Kernel(rows, threads=1, is_npu=True) as row:
            x_ub = T.alloc_shared((columns,), "float")
            best_ub = T.alloc_shared((16,), "float")
            tops_ub = T.alloc_shared((columns // 8,), "float")
            spread_ub = T.alloc_shared((columns // 8, 8), "float")
            T.copy(X[row, 0], x_ub)
            T.tile.block_reduce_max(tops_ub, x_ub, columns // 64, 64, 1, 1, 8)
            T.tile.brcb_experiment(spread_ub, tops_ub, columns // 64, 1, 8)
            T.copy(spread_ub, tops[row, 0, 0])
            T.tile.topk(best_ub, x_ub, 8, columns)
            T.copy(best_ub, best[row, 0])

    return main
