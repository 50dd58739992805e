"""Gated delta networks by chunks: a sequence is c chunks of t positions, a matrix state runs over the chunks.

G is the running sum of log decays within each chunk, gamma[i j] = exp(G_i - G_j).
kkt:      A[i j] = beta_i gamma[i j] k_i . k_j          for j < i
wy_fast:  W = A (beta exp(G) K),  U = A (beta V)        A here the inverse of 1 + kkt
chunk_h:  V' = U - W h,  h' = exp(G_last) h + K^T (exp(G_last - G) V')
chunk_o:  O = scale (exp(G) Q h + (gamma Q K^T, j <= i) V')
"""

from __future__ import annotations

from fusion.graph import Graph, Index, StageGraph, cast, contract, exp, expand, operator, part, total, where
from kernels.checks import MASKED, multiple, softmax_scale


def _chunked(name: str, batch: int, seq_len: int, heads: int, chunk_size: int, step: int = 0) -> tuple[Graph, Index]:
    """A graph with the dims b c h t, and the index along t."""
    chunks = multiple(name, seq_len=seq_len, chunk_size=chunk_size)
    g = Graph(name)
    g.dim("b", batch)
    g.dim("c", chunks, step=step)
    g.dim("h", heads)
    return g, g.dim("t", chunk_size, tiles=(chunk_size,))


@operator
def gdn_chunk_h(
    batch: int = 1,
    seq_len: int = 32768,
    heads: int = 32,
    dim_k: int = 128,
    dim_v: int = 128,
    chunk_size: int = 64,
    initial_state: bool = False,
    dtype: str = "bfloat16",
) -> StageGraph:
    """The state before each chunk, the corrected values and the final state (BSHD)."""
    g, t = _chunked("gdn_chunk_h", batch, seq_len, heads, chunk_size, step=1)
    g.dim("x", dim_k)
    g.dim("v", dim_v)
    K = g.input("K", "b (c t) h x", dtype)
    W = g.input("W", "b (c t) h x", dtype)
    U = g.input("U", "b (c t) h v", dtype)
    G = g.input("G", "b (c t) h", "float32")
    start = g.input("h0", "b h x v", "float32") if initial_state else 0.0

    with g.scan("c"):
        h = g.state("h", "b h x v", init=start)
        with g.vector("state_to_cube"):
            h_cast = g.let("h_cast", cast(h, dtype))
            H = g.let("H", expand(h_cast, "b c h x v"))
        with g.cube("wh"):
            wh = g.let("wh", contract(W, h_cast, over="x"))
        with g.vector("correct"):
            v_new = g.let("v_new", cast(U, "float32") - wh)
            V_new = g.let("V_new", cast(v_new, dtype))
            g_last = g.let("g_last", total(where(t >= chunk_size - 1, G, 0.0), over="c t"))
            decayed = g.let("decayed", cast(v_new * exp(g_last - G), dtype))
        with g.cube("kv"):
            kv = g.let("kv", contract(K, decayed, over="c t"))
        with g.vector("update"):
            final = g.let("final_state", h * exp(g_last) + kv)
        g.carry(h, final)

    g.output(H, "b c h x v")
    g.output(V_new, "b (c t) h v")
    g.output(final, "b h x v")
    return g.build()


@operator
def gdn_chunk_o(
    batch: int = 1,
    seq_len: int = 32768,
    heads: int = 32,
    dim_k: int = 128,
    dim_v: int = 128,
    chunk_size: int = 64,
    sm_scale: float | None = None,
    dtype: str = "bfloat16",
) -> StageGraph:
    """The output of each chunk from its state and its corrected values (BSHD)."""
    scale = softmax_scale("gdn_chunk_o", sm_scale, dim_k)
    g, t = _chunked("gdn_chunk_o", batch, seq_len, heads, chunk_size)
    u = g.dim("u", chunk_size, tiles=(chunk_size,))
    g.dim("x", dim_k)
    g.dim("v", dim_v)
    Q = g.input("Q", "b (c t) h x", dtype)
    K = g.input("K", "b (c u) h x", dtype)
    V = g.input("V", "b (c u) h v", dtype)
    H = g.input("H", "b c h x v", dtype)
    G = g.input("G", "b (c t) h", "float32")

    with g.cube("qh"):
        qh = g.let("qh", contract(Q, H, over="x"))
    with g.cube("qk"):
        qk = g.let("qk", contract(Q, K, over="x"))
    with g.vector("decay"):
        gamma = g.let("gamma", exp(where(u <= t, G - part(G, "t", "u"), MASKED)))
        a = g.let("a", cast(qk * gamma, dtype))
    with g.cube("av"):
        av = g.let("av", contract(a, V, over="u"))
    with g.vector("sum"):
        O = g.let("O", cast((qh * exp(G) + av) * scale, dtype))  # noqa: E741

    g.output(O, "b (c t) h v")
    return g.build()


@operator
def gdn_kkt(
    batch: int = 1, seq_len: int = 32768, heads: int = 32, dim_k: int = 128, chunk_size: int = 64, dtype: str = "bfloat16"
) -> StageGraph:
    """Decayed products of the keys within each chunk, below the diagonal (BSHD)."""
    g, t = _chunked("gdn_kkt", batch, seq_len, heads, chunk_size)
    u = g.dim("u", chunk_size, tiles=(chunk_size,))
    g.dim("x", dim_k)
    K = g.input("K", "b (c t) h x", dtype)
    beta = g.input("beta", "b (c t) h", dtype)
    G = g.input("G", "b (c t) h", "float32")

    with g.vector("scale_keys"):
        kb = g.let("kb", cast(cast(K, "float32") * cast(beta, "float32"), dtype))
        k_u = g.let("k_u", part(K, "t", "u"))
    with g.cube("kk"):
        kk = g.let("kk", contract(kb, k_u, over="x"))
    with g.vector("decay"):
        A = g.let("A", kk * exp(where(u < t, G - part(G, "t", "u"), MASKED)))

    g.output(A, "b (c t) h u")
    return g.build()


@operator
def gdn_wy_fast(
    batch: int = 1,
    seq_len: int = 32768,
    heads: int = 32,
    dim_k: int = 128,
    dim_v: int = 128,
    chunk_size: int = 64,
    dtype: str = "bfloat16",
) -> StageGraph:
    """The W and U of each chunk from its keys, values and the inverse A (BSHD)."""
    g, _ = _chunked("gdn_wy_fast", batch, seq_len, heads, chunk_size)
    g.dim("u", chunk_size, tiles=(chunk_size,))
    g.dim("x", dim_k)
    g.dim("v", dim_v)
    K = g.input("K", "b (c u) h x", dtype)
    V = g.input("V", "b (c u) h v", dtype)
    beta = g.input("beta", "b (c u) h", dtype)
    G = g.input("G", "b (c u) h", "float32")
    A = g.input("A", "b (c t) h u", dtype)

    with g.vector("scale_values"):
        vb = g.let("vb", cast(cast(V, "float32") * cast(beta, "float32"), dtype))
    with g.cube("av"):
        u_acc = g.let("u_acc", contract(A, vb, over="u"))
    with g.vector("cast_u"):
        U = g.let("U", cast(u_acc, dtype))
    with g.vector("scale_keys"):
        kb = g.let("kb", cast(cast(K, "float32") * (cast(beta, "float32") * exp(G)), dtype))
    with g.cube("ak"):
        w_acc = g.let("w_acc", contract(A, kb, over="u"))
    with g.vector("cast_w"):
        W = g.let("W", cast(w_acc, dtype))

    g.output(W, "b (c t) h x")
    g.output(U, "b (c t) h v")
    return g.build()
