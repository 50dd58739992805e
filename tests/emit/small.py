"""Small operators, one for each form that emission has a way of its own for: every plan of theirs must run without a finding."""

from __future__ import annotations

from fusion.graph import (
    Expr,
    Graph,
    StageGraph,
    absolute,
    cast,
    contract,
    expand,
    gather,
    largest,
    maximum,
    minimum,
    part,
    position,
    rsqrt,
    sigmoid,
    topk,
    topk_index,
    total,
    where,
)


def _finished(g: Graph, *outputs: Expr) -> StageGraph:
    for value in outputs:
        g.output(value)
    return g.build()


def state_that_leaves() -> StageGraph:
    """A state carried through another buffer, stored as it is after the loop; its vectors are shorter than a block of 32 bytes."""
    g = Graph("state_that_leaves")
    g.dim("c", 5, step=1)
    g.dim("r", 8)
    g.dim("d", 1040)
    X = g.input("X", "c r d", "float32")
    with g.scan("c"):
        S = g.state("S", "r d", init=1.0)
        m = g.state("m", "r", init=-2.0)
        n = g.state("n", "r", init=0.0)
        with g.vector("step"):
            S_new = g.let("S_new", total(expand(S, "c r d") * 0.5 + X, over="c"))
            m_new = g.let("m_new", maximum(m, largest(X, over="c d")))
            n_new = g.let("n_new", n + (m_new - m))
            kept = g.let("kept", cast(expand(S_new * 2.0, "c r d"), "float16"))
        g.carry(S, S_new)
        g.carry(m, m_new)
        g.carry(n, n_new)
    with g.vector("finish"):
        top = g.let("top", m_new - n_new)
    return _finished(g, S_new, kept, top)


def state_for_the_cube(inside: bool) -> StageGraph:
    """What a state is carried to goes to the Cube: in every step, or after the scan; and to the caller."""
    g = Graph("state_for_the_cube")
    g.dim("m", 48)
    g.dim("n", 40)
    g.dim("c", 5, step=1)
    g.dim("k", 64)
    X = g.input("X", "c m k", "float32")
    W = g.input("W", "n k", "float32")
    with g.scan("c"):
        S = g.state("S", "m k", init=0.0)
        with g.vector("step"):
            S_new = g.let("S_new", S * 0.5 + total(X, over="c"))
        g.carry(S, S_new)
        if inside:
            with g.cube("product"):
                y = g.let("y", contract(S_new, W, over="k"))
            with g.vector("keep"):
                Y = g.let("Y", expand(y * 2.0, "c m n"))
    if not inside:
        with g.cube("product"):
            y = g.let("y", contract(S_new, W, over="k"))
        with g.vector("keep"):
            Y = g.let("Y", y * 2.0)
    return _finished(g, S_new, Y)


def sum_for_the_cube() -> StageGraph:
    """A sum that a loop adds up on the Vector unit, read by the Cube after it."""
    g = Graph("sum_for_the_cube")
    g.dim("m", 48)
    g.dim("n", 40)
    g.dim("c", 5)
    g.dim("k", 64)
    X = g.input("X", "c m k", "float32")
    W = g.input("W", "k n", "float32")  # the host turns it: the Cube transposes no float32
    with g.vector("add"):
        S = g.let("S", total(X, over="c"))
    with g.cube("product"):
        y = g.let("y", contract(S, W, over="k"))
    with g.vector("keep"):
        Y = g.let("Y", y * 2.0)
    return _finished(g, Y)


def integers() -> StageGraph:
    """int32 arithmetic with both broadcasts, positions, comparisons, selects, and rounding to int8 and back."""
    g = Graph("integers")
    g.dim("b", 3)
    g.dim("r", 70)
    g.dim("c", 130)
    A = g.input("A", "b r", "int32")
    B = g.input("B", "c", "int32")
    X = g.input("X", "b r c", "float32")
    with g.vector("one"):
        apart = g.let("apart", A - B + position("c") * 2 - position("b"))
        near = g.let("near", minimum(maximum(apart, -4), 5))
        Y = g.let("Y", where(apart >= 1, X, 0.5) + cast(near, "float32"))
        chosen = g.let("chosen", where(X >= 0.0, near, -7))
        small = g.let("small", cast(X * 40.0, "int8"))
        back = g.let("back", cast(small, "float32"))
    return _finished(g, Y, chosen, small, back)


def narrow_selects() -> StageGraph:
    """Comparisons of float16, selects of float16 and bfloat16, by data and by index."""
    g = Graph("narrow_selects")
    r = g.dim("r", 128)
    c = g.dim("c", 128)
    X = g.input("X", "r c", "float16")
    Y = g.input("Y", "r c", "float16")
    Z = g.input("Z", "r c", "bfloat16")
    with g.vector("one"):
        larger = g.let("larger", where(X >= Y, X, Y))
        some = g.let("some", where(X < 0.5, Y, 1.0))
        lower = g.let("lower", where(c < r + 3, Z, 2.0))
        mixed = g.let("mixed", where(X >= Y, Z, 3.0))
    return _finished(g, larger, some, lower, mixed)


def weights_of_int8() -> StageGraph:
    """int8 and bfloat16 operands with tails in all dims, widened on the Vector unit for the Cube."""
    g = Graph("weights_of_int8")
    g.dim("m", 70)
    g.dim("k", 100)
    g.dim("n", 90)
    A = g.input("A", "m k", "bfloat16")
    B = g.input("B", "k n", "int8")
    with g.vector("widen"):
        a = g.let("a", cast(A, "float32"))
        b = g.let("b", cast(cast(B, "float32") * 0.125, "bfloat16"))
    with g.cube("product"):
        y = g.let("y", contract(A, b, over="k"))
    with g.vector("scale"):
        Y = g.let("Y", y + total(a, over="k"))
    return _finished(g, Y)


def rows_by_index() -> StageGraph:
    """Rows that data names, in every form: for the Cube, with tails, from a slice, cut into slices, whole pages, at computed positions."""
    g = Graph("rows_by_index")
    g.dim("b", 2)
    g.dim("t", 70)
    g.dim("v", 37)
    g.dim("e", 96)
    g.dim("d", 64)
    g.dim("n", 40)
    W = g.input("W", "b v e", "float16")
    U = g.input("U", "v d", "bfloat16")
    ids = g.input("ids", "b t", "int32")
    page = g.input("page", "b", "int32")
    pages = g.input("pages", "v t d", "float32")
    M = g.input("M", "d n", "float16")
    with g.vector("fetch"):
        rows = g.let("rows", gather(W, ids, "v"))
        left = g.let("left", part(rows, "e", "d"))
        right = g.let("right", cast(part(rows, "e", "d", start=32), "float32"))
        cut = g.let("cut", gather(part(W, "e", "d", start=16), ids, "v"))
        folded = g.let("folded", minimum(maximum(position("t") - 3, 0), 30))
        slid = g.let("slid", cast(gather(U, folded, "v"), "float32"))
        whole = g.let("whole", gather(pages, page, "v") + slid)
    with g.cube("product"):
        y = g.let("y", contract(left, M, over="d") + contract(cut, M, over="d"))
    with g.vector("sum"):
        Y = g.let("Y", y + total(right, over="d"))
    return _finished(g, Y, whole)


def names_of_buffers() -> StageGraph:
    """Values called as the scratch buffers of emission are."""
    g = Graph("names_of_buffers")
    g.dim("r", 70)
    g.dim("c", 72)
    X = g.input("tail", "r c", "float32")
    with g.vector("one"):
        ones = g.let("ones", X * 2.0)
        mask = g.let("mask", rsqrt(absolute(X) + 1.0))
        row = g.let("row", sigmoid(X))
        rank = g.let("rank", ones + mask + row - total(ones, over="c"))
    return _finished(g, rank)


def names_of_generated_code() -> StageGraph:
    """Values called as the source and the generated code call their own: types, keywords, indices, tile sizes."""
    g = Graph("names_of_generated_code")
    g.dim("r", 70)
    g.dim("c", 72)
    X = g.input("half", "r c", "float16")
    with g.vector("one"):
        pipe = g.let("pipe", cast(X, "float32") * 2.0)
        auto = g.let("auto", pipe + 1.0)
    with g.vector("two"):
        cid = g.let("cid", auto * pipe)
        block_r = g.let("block_r", cast(cid, "float16"))
    return _finished(g, pipe, auto, cid, block_r)


def sum_of_what_is_loaded() -> StageGraph:
    """One number for each head, whose last addition the host does: what is summed was worked out where it was loaded."""
    g = Graph("sum_of_what_is_loaded")
    g.dim("n", 6)
    g.dim("q", 320, tiles=(64,))
    g.dim("d", 64)
    A, B = g.input("A", "n q d", "float32"), g.input("B", "d", "float32")
    X = g.input("X", "n q", "float32")
    with g.vector("rows"):
        r = g.let("r", total(A * B, over="d"))
    with g.vector("number"):
        y = g.let("y", total(X * r * -1.0, over="q"))
    return _finished(g, r, y)


def ranked_rows(rows: int, row: int, kept: int) -> StageGraph:
    """The largest of each row: of float32 with equal values, of float16, one alone, for a sum; `rows` of 0 is a single row."""
    g = Graph("ranked_rows")
    if rows:
        g.dim("r", rows)
    g.dim("e", row)
    g.dim("t", kept)
    g.dim("s", 1)
    X = g.input("X", "r e" if rows else "e", "float16")
    with g.vector("rank"):
        steps = g.let("steps", cast(cast(cast(X, "float32") * 3.0, "int32"), "float32"))
        best = g.let("best", topk(steps, over="e", into="t"))
        at = g.let("at", topk_index(steps, over="e", into="t"))
        narrow = g.let("narrow", topk(X, over="e", into="t"))
        first = g.let("first", topk_index(X, over="e", into="s"))
        shares = g.let("shares", best / (total(absolute(best), over="t") + 1.0))
    return _finished(g, at, narrow, first, shares)


def ranked_for_the_cube() -> StageGraph:
    """The largest of each row as the rows of a product that sums over them: nothing of what lies behind the last may enter."""
    g = Graph("ranked_for_the_cube")
    g.dim("r", 70)
    g.dim("e", 72)
    g.dim("t", 20)
    g.dim("n", 40)
    X = g.input("X", "r e", "bfloat16")
    M = g.input("M", "t n", "float32")
    with g.vector("rank"):
        best = g.let("best", topk(cast(X, "float32"), over="e", into="t"))
    with g.cube("product"):
        y = g.let("y", contract(best, M, over="t"))
    return _finished(g, y)
