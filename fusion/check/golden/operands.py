"""The operands of a tile operation, and tables of what operations mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from fusion.check.golden.scalars import NotInterpreted, Value
from fusion.check.golden.store import Array, Tile, array


@dataclass
class Span:
    """Elements of a buffer that a pointer names."""

    tile: Tile
    start: int
    extent: int

    def read(self, count: int | None = None) -> Array:
        """The elements, half precision widened to single: vector units compute with more bits and round once."""
        found = self.tile.data[self.start : self.start + (self.extent if count is None else count)]
        return array(found.astype(np.float32)) if found.dtype == np.float16 else found

    def raw(self) -> npt.NDArray[np.uint8]:
        """The bytes from the pointer to the end of the buffer, to read and to write."""
        return self.tile.data[self.start :].view(np.uint8)

    def write(self, values: object) -> None:
        fresh = array(values)
        self.tile.put(slice(self.start, self.start + fresh.size), fresh)


@dataclass
class Operands:
    """The arguments of one operation: pointers as spans, numbers evaluated, texts as they are."""

    op: str
    args: tuple[Span | Value | str, ...]

    def span(self, index: int) -> Span:
        found = self.args[index]
        if not isinstance(found, Span):
            raise NotInterpreted(self.op)
        return found

    def number(self, index: int) -> float:
        return float(cast("float", self.args[index]))

    def count(self, index: int = -1) -> int:
        return int(cast("float", self.args[index]))

    def text(self, index: int) -> str:
        return str(self.args[index])


Meaning: TypeAlias = "Callable[[Operands], None]"


class Meanings(dict[str, Meaning]):
    """Operations by the name that the frontend gives them."""

    def entry(self, name: str) -> Callable[[Meaning], Meaning]:
        """Decorates the meaning of `ascend_NAME`."""

        def add(function: Meaning) -> Meaning:
            self[f"ascend_{name}"] = function
            return function

        return add
