"""The language of operators: stage graphs over named dims, how to write, read, check and evaluate them."""

from fusion.graph.builder import Graph, Operator, operator
from fusion.graph.expr import (
    Condition,
    Expr,
    Index,
    absolute,
    cast,
    contract,
    exp,
    expand,
    gather,
    largest,
    log,
    maximum,
    minimum,
    part,
    position,
    relu,
    rsqrt,
    scatter_add,
    sigmoid,
    smallest,
    sqrt,
    topk,
    topk_index,
    total,
    where,
)
from fusion.graph.stagegraph import StageGraph
from fusion.graph.text import from_text, to_text
from fusion.graph.types import DTYPE_BYTES, Affine, Carry, Dim, Op, Stage, Value
from fusion.graph.verify import verify

__all__ = [
    "DTYPE_BYTES", "Affine", "Carry", "Condition", "Dim", "Expr", "Graph", "Index", "Op", "Operator", "Stage", "StageGraph", "Value",
    "absolute", "cast", "contract", "exp", "expand", "from_text", "gather", "largest", "log", "maximum", "minimum", "operator", "part",
    "position", "relu", "rsqrt", "scatter_add", "sigmoid", "smallest", "sqrt", "to_text", "topk", "topk_index", "total", "verify", "where",
]  # fmt: skip
