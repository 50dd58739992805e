# pyright: basic, reportMissingImports=false
"""workspace-names: every GM buffer that one unit writes and the other reads has "workspace" in its name.

Before: Vector stores `scratch`, Cube loads `scratch`, and CombineCV inserts no flag, since it goes by the name.
After (rename=true): the buffer is `workspace_scratch`, and CombineCV orders the load after the store.

Option `rename` (default false): rename such buffers instead of only reporting them. Runs before CombineCV, which is the pass that
looks at the names. A finding has `rule`, `buffer`, `writer`, `reader`, `renamed_to` ("" if it was left) and `message`.
"""

from __future__ import annotations

from tvm import IRModule, tir

AT = "before CombineCV"
MARK = "workspace"
PREFIX = "workspace_"

CUBE_READS = ("copy_gm_to_l1", "copy_gm_to_l0a", "copy_gm_to_l0b")
CUBE_WRITES = ("copy_l0c_to_gm", "atomic_add_l0c_to_gm")
VECTOR_READS = ("copy_gm_to_ub",)
VECTOR_WRITES = ("copy_ub_to_gm", "atomic_add_ub_to_gm")
ROLES = (
    [(name, "cube", "reads") for name in CUBE_READS]
    + [(name, "cube", "writes") for name in CUBE_WRITES]
    + [(name, "vector", "reads") for name in VECTOR_READS]
    + [(name, "vector", "writes") for name in VECTOR_WRITES]
)


def _transfer(call):
    """(unit, "reads" or "writes") of a call that moves data from or to GM, None for any other call."""
    if not call.args or not isinstance(call.args[0], tir.StringImm):
        return None
    name = call.args[0].value.split("<")[0].split("::")[-1]
    return next(((unit, access) for known, unit, access in ROLES if name == known), None)


def _variables(call) -> list:
    """The buffer variables that a call is given pointers into."""
    found = []
    for argument in call.args[1:]:
        if isinstance(argument, tir.Call) and argument.op.name == "tir.tvm_access_ptr":
            found.append(argument.args[1])
    return found


def _accesses(func) -> dict:
    """For each GM buffer variable of the function, the set of (unit, access) that its body has."""
    own = {func.buffer_map[param].data for param in func.params if param in func.buffer_map}
    found: dict = {}

    def visit(node) -> None:
        role = _transfer(node) if isinstance(node, tir.Call) else None
        if role is not None:
            for variable in _variables(node):
                if variable in own:
                    found.setdefault(variable, set()).add(role)

    tir.stmt_functor.post_order_visit(func.body, visit)
    return found


def _crossing(accesses: set):
    """(writer, reader) when one unit writes what the other reads, else None."""
    for writer, reader in (("cube", "vector"), ("vector", "cube")):
        if (writer, "writes") in accesses and (reader, "reads") in accesses:
            return writer, reader
    return None


def _fresh(name: str, taken: set) -> str:
    fresh, number = PREFIX + name, 2
    while fresh in taken:
        fresh, number = f"{PREFIX}{name}_{number}", number + 1
    return fresh


def _renamed_buffer(buffer, name: str):
    data = tir.Var(name, buffer.data.type_annotation)
    return tir.decl_buffer(
        buffer.shape,
        buffer.dtype,
        name,
        data=data,
        strides=buffer.strides,
        elem_offset=buffer.elem_offset,
        scope=buffer.scope(),
        data_alignment=buffer.data_alignment,
        offset_factor=buffer.offset_factor,
    )


def _with_buffer(body, old, new):
    """`body` with every use of `old`, by its variable or as a buffer, turned into `new`."""
    body = tir.stmt_functor.substitute(body, {old.data: new.data})

    def uses(buffer) -> bool:
        return buffer.data.same_as(new.data) or buffer.data.same_as(old.data)

    def region(item):
        return tir.BufferRegion(new, item.region) if uses(item.buffer) else item

    def visit(node):
        if isinstance(node, tir.BufferLoad) and uses(node.buffer):
            return tir.BufferLoad(new, node.indices)
        if isinstance(node, tir.BufferStore) and uses(node.buffer):
            return tir.BufferStore(new, node.value, node.indices)
        if isinstance(node, tir.Block):
            reads, writes = [region(item) for item in node.reads], [region(item) for item in node.writes]
            return tir.Block(
                node.iter_vars,
                reads,
                writes,
                node.name_hint,
                node.body,
                node.init,
                node.alloc_buffers,
                node.match_buffers,
                node.annotations,
            )
        return None

    return tir.stmt_functor.ir_transform(body, None, visit, ["tir.BufferLoad", "tir.BufferStore", "tir.Block"])


def _attributes(func, old, new):
    """The function's attributes with tables that are keyed by buffer variable keyed by the new one."""
    attributes = {}
    for key, value in func.attrs.items():
        if hasattr(value, "items") and old.data in value:
            value = {new.data if variable.same_as(old.data) else variable: entry for variable, entry in value.items()}
        attributes[key] = value
    return attributes


def _rename(func, param, name: str):
    old = func.buffer_map[param]
    new = _renamed_buffer(old, name)
    handle = tir.Var(name + "_handle", param.dtype)
    params = [handle if other.same_as(param) else other for other in func.params]
    buffers = {(handle if other.same_as(param) else other): func.buffer_map[other] for other in func.buffer_map}
    buffers[handle] = new
    renamed = tir.PrimFunc(params, _with_buffer(func.body, old, new), func.ret_type, buffers)
    for key, value in _attributes(func, old, new).items():
        renamed = renamed.with_attr(key, value)
    return renamed


def _finding(buffer: str, writer: str, reader: str, renamed_to: str) -> dict:
    outcome = f"renamed to {renamed_to}" if renamed_to else "no flag will order them: rename it to " + PREFIX + buffer
    return {
        "rule": "workspace-names",
        "buffer": buffer,
        "writer": writer,
        "reader": reader,
        "renamed_to": renamed_to,
        "message": f"{buffer}: {writer} writes it and {reader} reads it, and its name lacks {MARK!r}; {outcome}",
    }


def _check(func, rename: bool):
    findings = []
    accesses = _accesses(func)
    taken = {func.buffer_map[param].name for param in func.buffer_map}
    for param in list(func.params):
        buffer = func.buffer_map.get(param)
        crossing = _crossing(accesses.get(buffer.data, set())) if buffer is not None else None
        if buffer is None or crossing is None or MARK in buffer.data.name:
            continue
        name = _fresh(buffer.name, taken) if rename else ""
        findings.append(_finding(buffer.name, *crossing, name))
        if rename:
            func = _rename(func, param, name)
    return func, findings


def run(mod: IRModule, options: dict) -> tuple[IRModule, list[dict]]:
    """Check, and with the option `rename` repair, every function of the module."""
    unknown = sorted(set(options) - {"rename"})
    if unknown:
        raise ValueError(f"workspace-names has no option {unknown[0]!r}; its option is 'rename' (true or false)")
    rename = bool(options.get("rename", False))
    findings: list[dict] = []
    for name in mod.get_global_vars():
        func, found = _check(mod[name], rename)
        if func is not mod[name]:
            mod = IRModule({**{other: mod[other] for other in mod.get_global_vars()}, name: func})
        findings += found
    return mod, findings
