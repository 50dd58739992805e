"""The interpreter against numpy, on programs built by hand: no compiler is needed."""

from __future__ import annotations

import numpy as np
import pytest

from fusion.check import program as p
from fusion.check.facts import collect
from fusion.check.golden import NotInterpreted, interpret
from fusion.check.golden.copies import Box, copy
from fusion.check.golden.store import Tile, array

ZERO = p.Const(0, "int32")


def const(value: float) -> p.Const:
    return p.Const(value, "int32" if isinstance(value, int) else "float32")


def tile(values: object, dtype: str = "float32") -> Tile:
    data = array(np.asarray(values, dtype))
    return Tile(data.shape, dtype, data.reshape(-1).copy())


def whole(name: str, rows: int, columns: int) -> p.Region:
    return p.Region(name, (ZERO, ZERO), (const(rows), const(columns)))


def pointer(name: str, extent: int) -> p.Pointer:
    return p.Pointer(name, ZERO, const(extent))


def program(*body: p.Stmt, rows: int = 4, columns: int = 8, dtype: str = "float32") -> p.Program:
    """GM `x` is loaded to UB `u` and `w`, the body runs, and `u` is stored to GM `y`."""
    shape = (const(rows), const(columns))
    allocs = tuple(p.Alloc(name, dtype, shape, "shared", 0) for name in ("u", "w"))
    load = [p.Eval(1, p.Call("ascend_copy", (whole("x", rows, columns), whole(name, rows, columns)), "")) for name in ("u", "w")]
    store = p.Eval(9, p.Call("ascend_copy", (whole("u", rows, columns), whole("y", rows, columns)), ""))
    inner = p.Block(allocs, p.Seq((*load, *body, store)))
    return p.Program("k", (p.Param("x", dtype, shape), p.Param("y", dtype, shape)), "cid", const(1), "", 1, inner, allocs)


def result(kernel: p.Program, x: np.ndarray) -> np.ndarray:
    buffers = {"x": tile(x, kernel.params[0].dtype), "y": Tile.empty(x.shape, kernel.params[0].dtype)}
    return np.asarray(interpret(collect(kernel), buffers, {}).outputs["y"])


X = np.random.default_rng(1).uniform(0.1, 1.0, (4, 8)).astype(np.float32)


@pytest.mark.parametrize(
    ("op", "expected"),
    [("exp", np.exp(X)), ("ln", np.log(X)), ("rsqrt", 1 / np.sqrt(X)), ("sigmoid", 1 / (1 + np.exp(-X))), ("relu", np.maximum(X, 0))],
)
def test_unary_operations(op: str, expected: np.ndarray) -> None:
    call = p.Call(f"ascend_{op}", (pointer("u", 32), pointer("u", 32), const(32)), "")
    np.testing.assert_allclose(result(program(p.Eval(2, call)), X), expected, rtol=1e-6)


def test_operations_with_a_number_and_with_a_tile() -> None:
    scaled = p.Call("ascend_muls", (pointer("u", 32), pointer("u", 32), const(2.0), const(32)), "")
    added = p.Call("ascend_add", (pointer("u", 32), pointer("u", 32), pointer("w", 32), const(32)), "")
    np.testing.assert_allclose(result(program(p.Eval(2, scaled), p.Eval(3, added)), X), 3 * X, rtol=1e-6)


def test_a_parallel_loop_means_all_its_iterations_at_once() -> None:
    """u[i, j] = u[i, j] - w[i, 0]: every row loses its own first element."""
    index = (p.Name("i"), p.Name("j"))
    value = p.Binary("-", p.Load("u", index, "float32"), p.Load("w", (p.Name("i"), ZERO), "float32"), "float32")
    inner = p.For("j", ZERO, const(8), "parallel", 0, p.Store(2, "u", index, value))
    np.testing.assert_allclose(result(program(p.For("i", ZERO, const(4), "parallel", 0, inner)), X), X - X[:, :1], rtol=1e-6)


def test_a_serial_loop_carries_its_tile() -> None:
    double = p.Eval(2, p.Call("ascend_add", (pointer("u", 32), pointer("u", 32), pointer("u", 32), const(32)), ""))
    np.testing.assert_allclose(result(program(p.For("k", ZERO, const(3), "serial", 0, double)), X), 8 * X, rtol=1e-6)


def test_half_precision_rounds_once_an_operation() -> None:
    x = X.astype(np.float16)
    call = p.Call("ascend_exp", (pointer("u", 32), pointer("u", 32), const(32)), "")
    np.testing.assert_array_equal(result(program(p.Eval(2, call), dtype="float16"), x), np.exp(x.astype(np.float32)).astype(np.float16))


def test_an_unknown_operation_is_named_with_its_line() -> None:
    call = p.Call("ascend_sort", (pointer("u", 32), pointer("u", 32), const(32)), "")
    with pytest.raises(NotInterpreted, match=r"ascend_sort \(line 7\)"):
        result(program(p.Eval(7, call)), X)


def test_a_gemm_accumulates_unless_it_begins() -> None:
    a, b = np.arange(6, dtype=np.float16).reshape(2, 3), np.ones((3, 2), np.float16)
    shapes = {"a": (2, 3), "b": (3, 2), "c": (2, 2)}
    params = tuple(p.Param(n, "float16" if n != "c" else "float32", tuple(map(const, s))) for n, s in shapes.items())
    allocs = tuple(p.Alloc(f"{n}_l", q.dtype, q.shape or (), "shared.dyn", 0) for n, q in zip(shapes, params, strict=True))
    loads = [p.Eval(1, p.Call("ascend_copy", (whole(n, *shapes[n]), whole(f"{n}_l", *shapes[n])), "")) for n in "ab"]
    operands = (p.Text("gemm_v0<half, float, 2, 2, 3, false, false>"), pointer("a_l", 6), pointer("b_l", 6), pointer("c_l", 4))
    gemms = [p.Eval(2, p.Call("ascend_gemm_v0", (*operands, p.Const(first, "bool")), "")) for first in (1, 0)]
    store = p.Eval(3, p.Call("ascend_copy", (whole("c_l", 2, 2), whole("c", 2, 2)), ""))
    kernel = p.Program("k", params, "cid", const(1), "", 1, p.Block(allocs, p.Seq((*loads, *gemms, store))), allocs)
    buffers = {"a": tile(a, "float16"), "b": tile(b, "float16"), "c": Tile.empty((2, 2), "float32")}
    np.testing.assert_allclose(interpret(collect(kernel), buffers, {}).outputs["c"], 2 * (a @ b))


def test_a_tail_is_padded_on_the_way_in_and_cut_on_the_way_out() -> None:
    gm, ub = tile(np.arange(10).reshape(5, 2)), Tile.empty((4, 2), "float32")
    copy(Box(gm, (3, 0), (4, 2), True), Box(ub, (0, 0), (4, 2), False))
    np.testing.assert_array_equal(ub.box, [[6, 7], [8, 9], [0, 0], [0, 0]])
    out = tile(np.full((5, 2), -1.0))
    copy(Box(ub, (0, 0), (4, 2), False), Box(out, (3, 0), (4, 2), True))
    np.testing.assert_array_equal(out.box[3:], [[6, 7], [8, 9]])
