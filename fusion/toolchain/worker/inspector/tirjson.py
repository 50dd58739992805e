# pyright: basic, reportMissingImports=false
"""A prim_func as the frontend made it, as JSON: parameters, launch, and the tree of statements with their source lines.

Statements are lists headed by their kind: seq, for, if, let, block, store, eval, while, scope. Expressions likewise: c (constant),
s (string), v (variable), load, ptr (a pointer: buffer, offset, extent), region (buffer, starts, extents), cast, select, call, op.
"""

from __future__ import annotations

from tvm import tir

from .lines import Lines

BINARY = {
    "Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%", "FloorDiv": "//", "FloorMod": "mod", "Min": "min", "Max": "max",
    "EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">=", "And": "and", "Or": "or",
}  # fmt: skip
UNSEEN = ("tl.loop_break",)
"""Calls that the frontend makes without the parser's knowledge."""
FOR_KINDS = ("serial", "parallel", "vectorized", "unrolled", "thread")


class Unknown(Exception):
    """A node that this form has no word for."""


class Converter:
    """Converts one prim_func; names are made unique by a number behind them."""

    def __init__(self, func, lines: Lines) -> None:
        self.func, self.lines = func, lines
        self.calls, self.stores, self.allocs = iter(lines.calls), iter(lines.stores), iter(lines.allocations)
        self.names: dict = {}
        self.taken: set[str] = set()
        self.launch: dict = {}

    def name(self, var) -> str:
        if var not in self.names:
            base = fresh = var.name or "v"
            number = 1
            while fresh in self.taken:
                fresh, number = f"{base}_{number}", number + 1
            self.taken.add(fresh)
            self.names[var] = fresh
        return self.names[var]

    def program(self) -> dict:
        func = self.func
        self.known = [(func.buffer_map[param].data, func.buffer_map[param].name) for param in func.params if param in func.buffer_map]
        for data, name in self.known:
            self.names[data] = name
            self.taken.add(name)
        params = [self._param(param) for param in func.params]
        body = self.stmt(func.body)
        name = str(func.attrs["global_symbol"]) if func.attrs and "global_symbol" in func.attrs else "main"
        return {"name": name, "params": params, "launch": self.launch, "body": body}

    def _param(self, param) -> dict:
        if param not in self.func.buffer_map:
            return {"name": self.name(param), "dtype": str(param.dtype), "shape": None}
        buffer = self.func.buffer_map[param]
        return {"name": self.name(buffer.data), "dtype": str(buffer.dtype), "shape": [self.expr(size) for size in buffer.shape]}

    # ---- statements

    def stmt(self, node):
        kind = type(node).__name__
        handler = getattr(self, "_" + kind.lower(), None)
        if handler is None:
            raise Unknown(kind)
        return handler(node)

    def _seqstmt(self, node):
        return ["seq", [self.stmt(child) for child in node.seq]]

    def _evaluate(self, node):
        if not isinstance(node.value, tir.Call):
            return ["seq", []]
        made_by_frontend = getattr(node.value.op, "name", "") in UNSEEN
        return ["eval", 0 if made_by_frontend else next(self.calls, 0), self.expr(node.value)]

    def _bufferstore(self, node):
        line = next(self.stores, 0)
        return ["store", line, self.name(node.buffer.data), [self.expr(i) for i in node.indices], self.expr(node.value)]

    def _for(self, node):
        notes = {str(key): int(value) for key, value in node.annotations.items() if isinstance(value, tir.IntImm)}
        head = [self.name(node.loop_var), self.expr(node.min), self.expr(node.extent), FOR_KINDS[int(node.kind)], notes]
        return ["for", *head, self.stmt(node.body)]

    def _while(self, node):
        return ["while", self.expr(node.condition), self.stmt(node.body)]

    def _ifthenelse(self, node):
        otherwise = self.stmt(node.else_case) if node.else_case is not None else ["seq", []]
        return ["if", self.expr(node.condition), self.stmt(node.then_case), otherwise]

    def _letstmt(self, node):
        return ["let", self.name(node.var), self.expr(node.value), self.stmt(node.body)]

    def _assertstmt(self, node):
        return self.stmt(node.body)

    def _attrstmt(self, node):
        if node.attr_key == "thread_extent":
            name = self.name(node.node.var)
            self.launch[str(node.node.thread_tag)] = [name, self.expr(node.value)]
            return self.stmt(node.body)
        if node.attr_key == "resource_scope":
            return ["scope", "cube" if int(node.value) == 0 else "vector", self.stmt(node.body)]
        return self.stmt(node.body)

    def _blockrealize(self, node):
        return self._block(node.block)

    def _block(self, node):
        allocs = []
        for buffer in node.alloc_buffers:
            shape = [self.expr(size) for size in buffer.shape]
            allocs.append([self.name(buffer.data), str(buffer.dtype), shape, str(buffer.scope()), next(self.allocs, 0)])
        inits = node.annotations.get("tl.local_var_init") if node.annotations else None
        values = {self.name(var): self.expr(value) for var, value in inits.items()} if inits is not None else {}
        return ["block", allocs, values, self.stmt(node.body)]

    # ---- expressions

    def expr(self, node):
        kind = type(node).__name__
        if kind in ("IntImm", "FloatImm"):
            return ["c", node.value, str(node.dtype)]
        if kind == "StringImm":
            return ["s", node.value]
        if kind in ("Var", "SizeVar"):
            return ["v", self.name(node), str(node.dtype)]
        if kind in BINARY:
            return ["op", BINARY[kind], self.expr(node.a), self.expr(node.b), str(node.dtype)]
        if kind == "Not":
            return ["op", "not", self.expr(node.a), ["c", 0, "bool"], "bool"]
        if kind == "Cast":
            return ["cast", self.expr(node.value), str(node.dtype)]
        if kind == "Select":
            return ["select", self.expr(node.condition), self.expr(node.true_value), self.expr(node.false_value)]
        if kind in ("BufferLoad", "ProducerLoad"):
            return ["load", self.name(node.buffer.data), [self.expr(i) for i in node.indices], str(node.dtype)]
        if kind == "Call":
            return self._call(node)
        raise Unknown(kind)

    def _call(self, node):
        name = getattr(node.op, "name", "") or getattr(node.op, "name_hint", "")
        if name == "tir.tvm_access_ptr":
            _, data, offset, extent, mask = node.args
            return ["ptr", self.name(data), self.expr(offset), self.expr(extent), self.expr(mask)]
        if name == "tl.region":
            load, mask, *extents = node.args
            return [
                "region",
                self.name(load.buffer.data),
                [self.expr(i) for i in load.indices],
                [self.expr(e) for e in extents],
                self.expr(mask),
            ]
        if name == "tir.if_then_else":
            return ["select", *[self.expr(argument) for argument in node.args]]
        return ["call", name.split(".", 1)[-1], [self.expr(argument) for argument in node.args], str(node.dtype)]
