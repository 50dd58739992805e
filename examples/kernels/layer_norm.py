"""Layer norm over the last dim: y = (x - mean) / sqrt(var + eps) * gamma + beta, on Vector cores only."""

import tilelang
import tilelang.language as T

pass_configs = {
    tilelang.PassConfigKey.TL_ASCEND_AUTO_SYNC: True,
    tilelang.PassConfigKey.TL_ASCEND_MEMORY_PLANNING: True,
}


@tilelang.jit(out_idx=[-1], pass_configs=pass_configs)
def layer_norm(rows=128, columns=256, block=32, eps=1e-5):
    half = block // 2

    @T.prim_func
    def main(
        X: T.Tensor((rows, columns), "float"),
        gamma: T.Tensor((1, columns), "float"),
        beta: T.Tensor((1, columns), "float"),
        Y: T.Tensor((rows, columns), "float"),
    ):
        with T.Kernel(rows // block, is_npu=True) as (cid, vid):
            x_ub = T.alloc_ub((half, columns), "float")
            y_ub = T.alloc_ub((half, columns), "float")
            wide_ub = T.alloc_ub((half, columns), "float")
            row_ub = T.alloc_ub((1, columns), "float")
            stat_ub = T.alloc_ub((half, 1), "float")

            T.copy(X[cid * block + vid * half, 0], x_ub)
            # x - mean
            T.reduce_sum(x_ub, stat_ub, dim=-1)
            T.tile.mul(stat_ub, stat_ub, 1.0 / columns)
            T.tile.broadcast(wide_ub, stat_ub)
            T.tile.sub(x_ub, x_ub, wide_ub)
            # var + eps
            T.tile.mul(y_ub, x_ub, x_ub)
            T.reduce_sum(y_ub, stat_ub, dim=-1)
            T.tile.mul(stat_ub, stat_ub, 1.0 / columns)
            T.tile.add(stat_ub, stat_ub, eps)
            T.tile.sqrt(stat_ub, stat_ub)
            T.tile.broadcast(wide_ub, stat_ub)
            T.tile.div(y_ub, x_ub, wide_ub)
            # * gamma + beta
            T.copy(gamma[0:1, 0:columns], row_ub)
            T.tile.broadcast(wide_ub, row_ub)
            T.tile.mul(y_ub, y_ub, wide_ub)
            T.copy(beta[0:1, 0:columns], row_ub)
            T.tile.broadcast(wide_ub, row_ub)
            T.tile.add(y_ub, y_ub, wide_ub)
            T.copy(y_ub, Y[cid * block + vid * half, 0])

    return main
