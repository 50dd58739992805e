# pyright: basic, reportMissingImports=false
"""What a caller needs to launch a lowered kernel: its buffers in launch order, blocks, streams and on-chip layout."""

from __future__ import annotations

import re

from tvm import tir

RATIOS = {"cv_1_2": 2, "cv_1_1": 1}


def _dim(value) -> int | str:
    return int(value) if isinstance(value, tir.IntImm) else str(value)


def _indices(value, count: int) -> set[int]:
    if value is None:
        return set()
    listed = value if isinstance(value, list | tuple) else [value]
    return {int(index) % count for index in listed}


def _role(index: int, name: str, own: int, outputs: set[int], workspaces: set[int]) -> str:
    if index >= own:
        return "relay"
    if index in outputs:
        return "output"
    return "workspace" if index in workspaces or "workspace" in name else "tensor"


def _own_shapes(func) -> dict:
    return {func.buffer_map[var].name: func.buffer_map[var] for var in func.params if var in func.buffer_map}


SCALARS = {"int32_t": "int32", "int64_t": "int64", "uint32_t": "uint32", "uint64_t": "uint64", "float": "float32"}
FLAGS_PARAMETER = "fftsAddr"


def open_sizes(source: str, entry: str, known: list[dict]) -> list[dict]:
    """The scalars that code generation appends to the launch parameters: one a symbolic size, in the order of the signature."""
    match = re.search(rf"\b{re.escape(entry)}_kernel\(([^)]*)\)\s*{{", source)
    if match is None:
        return []
    names = {param["name"] for param in known}
    found = []
    for parameter in match.group(1).split(","):
        kind, _, name = parameter.strip().rpartition(" ")
        if kind in SCALARS and name not in names and name != FLAGS_PARAMETER:
            found.append({"name": name, "dtype": SCALARS[kind], "shape": [], "role": "scalar"})
    return found


def params(before, after, options: dict) -> list[dict]:
    """The launch parameters of `after`; shapes as written in `before` where it has the buffer (passes flatten them)."""
    own, shapes = len(before.params), _own_shapes(before)
    outputs = _indices(options.get("out_idx"), own)
    workspaces = _indices(options.get("workspace_idx"), own)
    found = []
    for index, var in enumerate(after.params):
        if var not in after.buffer_map:
            found.append({"name": var.name, "dtype": str(var.dtype), "shape": [], "role": "scalar"})
            continue
        buffer = after.buffer_map[var]
        shape = [_dim(size) for size in shapes.get(buffer.name, buffer).shape]
        role = _role(index, buffer.name, own, outputs, workspaces)
        found.append({"name": buffer.name, "dtype": str(buffer.dtype), "shape": shape, "role": role})
    return found


def grid(func) -> tuple[int | str, int | None]:
    """Blocks of the launch, and the extent of `vid` (Vector streams of a block) or None when the kernel names none."""
    extents: dict[str, int | str] = {}

    def visit(node) -> None:
        if isinstance(node, tir.AttrStmt) and node.attr_key == "thread_extent":
            extents.setdefault(node.node.thread_tag, _dim(node.value))

    tir.stmt_functor.post_order_visit(func.body, visit)
    threads = extents.get("threadIdx.x", extents.get("blockIdx.y"))
    return extents.get("blockIdx.x", 1), threads if isinstance(threads, int) else None


def task_type(source: str) -> str:
    """The unit mix that the generated source declares, such as MIX_AIC_1_2 or AIV_ONLY; empty when it declares none."""
    match = re.search(r"KERNEL_TASK_TYPE_DEFAULT\(KERNEL_TYPE_(\w+)\)", source)
    return match.group(1) if match else ""


def _scopes(func) -> dict[str, str]:
    scopes: dict[str, str] = {}

    def visit(node) -> None:
        if isinstance(node, tir.Allocate):
            scopes[node.buffer_var.name] = str(node.buffer_var.type_annotation.storage_scope)

    tir.stmt_functor.post_order_visit(func.body, visit)
    return scopes


def on_chip(func) -> list[dict]:
    """On-chip buffers with the address and size in bytes that memory planning gave them, by name; empty when planning is off."""
    attrs = func.attrs
    if attrs is None or "address_map" not in attrs or "size_map" not in attrs:
        return []
    sizes = {var.name: int(size) for var, size in attrs["size_map"].items()}
    scopes = _scopes(func)
    places = [
        {"name": var.name, "scope": scopes.get(var.name, ""), "address": int(address), "bytes": sizes.get(var.name, 0)}
        for var, address in attrs["address_map"].items()
    ]
    return sorted(places, key=lambda place: (place["scope"], place["address"], place["name"]))
