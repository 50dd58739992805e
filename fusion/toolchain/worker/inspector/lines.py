# pyright: basic, reportMissingImports=false
"""Which line of the user's file made each statement: the frontend gives TIR no spans, so its own calls are watched."""

from __future__ import annotations

import tvm.script.ir_builder.tir as builder
import tvm.script.parser.tir as script
from tilelang.language import allocate
from tvm import tir
from tvm.script.parser.core.parser import Parser


class Lines:
    """Lines of calls, stores and allocations in the order in which the frontend makes them, for the prim_func built last."""

    def __init__(self, path: str) -> None:
        self.path, self.current = path, 0
        self.calls: list[int] = []
        self.stores: list[int] = []
        self.allocations: list[int] = []
        self._watch()

    def reset(self) -> None:
        """Forget; call before a prim_func is built."""
        self.calls, self.stores, self.allocations = [], [], []

    def _watch(self) -> None:
        visit = Parser.visit

        def visiting(parser, node):
            line = getattr(node, "lineno", None)
            if line:
                self.current = line + parser.diag.source.start_line - 1
            return visit(parser, node)

        Parser.visit = visiting
        evaluate, store = builder.evaluate, builder.buffer_store

        def evaluating(value):
            if isinstance(value, tir.Call):
                self.calls.append(self.current)
            return evaluate(value)

        def storing(*args, **kwargs):
            self.stores.append(self.current)
            return store(*args, **kwargs)

        builder.evaluate, builder.buffer_store = evaluating, storing
        self._watch_allocations()

    def _watch_allocations(self) -> None:
        allocating = script.alloc_buffer

        def alloc_buffer(*args, **kwargs):
            self.allocations.append(self.current)
            return allocating(*args, **kwargs)

        script.alloc_buffer = alloc_buffer
        allocate.T.alloc_buffer = alloc_buffer
