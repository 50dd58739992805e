"""The arguments of a kernel: named buffers in global memory, and their bytes on the way in and out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, cast

import numpy as np
import numpy.typing as npt

from fusion.errors import FusionError, did_you_mean

Array = npt.NDArray[np.generic]
Role = Literal["in", "out", "inout", "workspace"]
ROLES: tuple[Role, ...] = ("in", "out", "inout", "workspace")

# dtype -> (C++ type of the generated code, numpy storage type). bfloat16 is stored as its 16 bits.
DTYPES: dict[str, tuple[str, str]] = {
    "float16": ("half", "float16"),
    "bfloat16": ("bfloat16_t", "uint16"),
    "float32": ("float", "float32"),
    "int8": ("int8_t", "int8"),
    "uint8": ("uint8_t", "uint8"),
    "int16": ("int16_t", "int16"),
    "uint16": ("uint16_t", "uint16"),
    "int32": ("int32_t", "int32"),
    "uint32": ("uint32_t", "uint32"),
    "int64": ("int64_t", "int64"),
    "uint64": ("uint64_t", "uint64"),
}
ALIASES = {"float": "float32", "half": "float16", "bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "int": "int32"}


class TensorLike(Protocol):
    """What is needed of a torch tensor: this module does not import torch."""

    def detach(self) -> TensorLike: ...
    def cpu(self) -> TensorLike: ...
    def float(self) -> TensorLike: ...
    def numpy(self) -> Array: ...
    @property
    def dtype(self) -> object: ...


@dataclass(frozen=True)
class Buffer:
    """One GM argument. `data` None means uninitialised: every byte is 0xff, which reads as NaN in every float format."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    data: Array | TensorLike | None = None
    role: Role = "in"

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", canonical_dtype(self.dtype, where=f"buffer {self.name!r}"))
        object.__setattr__(self, "shape", tuple(int(n) for n in self.shape))
        if self.role not in ROLES:
            raise FusionError(f"role {self.role!r}", where=f"buffer {self.name!r}", remedy=did_you_mean(self.role, ROLES))
        if self.data is None and self.role in ("in", "inout"):
            raise FusionError("an input without data", where=f"buffer {self.name!r}", remedy="give data=, or role 'out' or 'workspace'")
        if self.data is not None and (given := tuple(np.shape(cast(Array, self.data)))) != self.shape:
            raise FusionError(f"data of shape {given}, declared {self.shape}", where=f"buffer {self.name!r}")

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * np.dtype(DTYPES[self.dtype][1]).itemsize


def canonical_dtype(dtype: str, *, where: str = "") -> str:
    """The full name of a dtype: 'half' -> 'float16'."""
    name = ALIASES.get(dtype, dtype)
    if name not in DTYPES:
        raise FusionError(f"dtype {dtype!r}", where=where, remedy=did_you_mean(dtype, [*DTYPES, *ALIASES]))
    return name


def to_bfloat16_bits(values: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """float32 -> the 16 bits of bfloat16, rounded to nearest even: add 0x7fff plus the last kept bit, then cut."""
    raw = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = ((raw + 0x7FFF + ((raw >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)


def from_bfloat16_bits(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """The 16 bits of bfloat16 -> float32, exactly."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def as_array(data: Array | TensorLike) -> Array:
    """A numpy array of a tensor; bfloat16, which numpy lacks, is widened to float32."""
    if isinstance(data, np.ndarray):
        return data
    tensor = data.detach().cpu()
    return (tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).numpy()


def encode(buffer: Buffer) -> Array:
    """The bytes that the device would hold, as a contiguous array of the storage type."""
    assert buffer.data is not None
    array = as_array(buffer.data)
    if buffer.dtype == "bfloat16":
        return to_bfloat16_bits(array.astype(np.float32))
    return np.ascontiguousarray(array.astype(DTYPES[buffer.dtype][1]))


def decode(raw: npt.NDArray[np.uint8], buffer: Buffer) -> Array:
    """The values of a buffer after the run; bfloat16 comes back as float32 with the same values."""
    stored = raw[: buffer.nbytes].copy().view(DTYPES[buffer.dtype][1]).reshape(buffer.shape)
    return from_bfloat16_bits(cast("npt.NDArray[np.uint16]", stored)) if buffer.dtype == "bfloat16" else stored


def place(buffers: Sequence[Buffer], gap: int = 4096) -> tuple[list[int], int]:
    """Offsets of the buffers in one arena, aligned to 512 bytes with a gap behind each, and the arena's size."""
    offsets: list[int] = []
    at = gap
    for buffer in buffers:
        offsets.append(at)
        at = (at + buffer.nbytes + gap + 511) // 512 * 512
    return offsets, at
