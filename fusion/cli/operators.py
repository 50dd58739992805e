"""The operator that a command line names, with its parameters from --shape and --dtype."""

from __future__ import annotations

import inspect
import traceback
from types import UnionType
from typing import Union, get_args, get_origin

from fusion.errors import FusionError, did_you_mean, near
from fusion.graph import DTYPE_BYTES, Operator, StageGraph

Parameter = int | float | bool | str | None
ALIASES = {"fp16": "float16", "half": "float16", "bf16": "bfloat16", "fp32": "float32", "float": "float32"}
LARGEST = 64 * 2**30  # bytes of device memory: no tensor is larger
_ARTICLE = {int: "an integer", float: "a number", bool: "true or false", str: "a text"}


def build(spec: str, shape: tuple[str, ...] = (), dtype: str = "") -> StageGraph:
    """The graph of the operator `spec` (a name, or path/to/op.py[:name]). Raises FusionError for what does not fit."""
    operator = load(spec)
    values = parameters(spec, shape, dtype)
    _refuse_missing(operator, values, spec)
    try:
        return _checked(operator.build(**values), operator, spec)
    except FusionError as error:
        place = _place(operator, spec, error)
        raise FusionError(error.what, where=place or error.where, remedy=error.remedy or ("correct the line" if place else "")) from error
    except Exception as error:
        place = _place(operator, spec, error) or operator.name
        given = ", ".join(f"{name}={value}" for name, value in values.items()) or "its defaults"
        remedy = f"the operator's function fails with {given}: correct the line, or refuse what it cannot take with a FusionError"
        raise FusionError(f"{type(error).__name__}: {error}", where=place, remedy=remedy) from error


def _refuse_missing(operator: Operator[...], values: dict[str, Parameter], spec: str) -> None:
    """Raises FusionError if a parameter has neither a value nor a default."""
    missing = [p.name for p in operator.parameters.values() if p.default is inspect.Parameter.empty and p.name not in values]
    if missing:
        where = f"{spec.split('.py')[0]}.py:{operator.build.__code__.co_firstlineno}" if ".py" in spec else operator.name
        example = ",".join(f"{name}=..." for name in missing)
        raise FusionError(
            f"{operator.name} needs a value for {', '.join(missing)}", where=where, remedy=f"give --shape {example}, or a default"
        )


def _checked(graph: object, operator: Operator[...], spec: str) -> StageGraph:
    """The graph that an operator gave, of a size that a device can hold."""
    if not isinstance(graph, StageGraph):
        raise FusionError(f"{operator.name} gives {type(graph).__name__}, not a graph", where=spec, remedy="end it with `return g.build()`")
    for v in (*graph.inputs, *graph.outputs):
        size = graph.size(v.dims) * v.itemsize
        if size > LARGEST:
            raise FusionError(
                f"{v.name} takes {size / 2**30:.0f} GB", where=operator.name, remedy=f"a device holds {LARGEST >> 30} GB: use smaller sizes"
            )
    return graph


def parameters(spec: str, shape: tuple[str, ...] = (), dtype: str = "") -> dict[str, Parameter]:
    """What --shape and --dtype give, checked against the operator's parameters."""
    operator = load(spec)
    values = parse_shape(operator, shape)
    if dtype:
        values["dtype"] = _dtype(operator, dtype)
    return values


def load(spec: str) -> Operator[...]:
    """The operator, where a mistyped name may also have been meant as a command."""
    import kernels

    is_file = spec.endswith(".py") or ".py:" in spec
    if not is_file and spec not in kernels.OPERATORS:
        from fusion.cli.main import COMMANDS

        known = [*kernels.OPERATORS, *COMMANDS]
        listed = "see `fusion-plan list` for the operators, `fusion-plan --help` for the commands, or give path/to/op.py"
        raise FusionError(f"no operator {spec!r}", remedy=did_you_mean(spec, known) if near(spec, known) else listed)
    return kernels.load(spec)


def _place(operator: Operator[...], spec: str, error: Exception) -> str:
    """`file:line` of the last frame in a user's operator file; "" for an operator of ours."""
    if ".py" not in spec:
        return ""
    file = inspect.getfile(operator.build)
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    return f"{spec.split('.py')[0]}.py:{lines[-1]}" if lines else ""


def parse_shape(operator: Operator[...], shape: tuple[str, ...]) -> dict[str, Parameter]:
    """`("seq_len=4096,window=none",)` as arguments of the operator, by the types that it declares."""
    known, found = operator.parameters, dict[str, Parameter]()
    for item in (i.strip() for text in shape for i in text.split(",") if i.strip()):
        key, equals, text = (part.strip() for part in item.partition("="))
        if not equals:
            raise FusionError(f"--shape {item}: no value", remedy="write it like --shape seq_len=4096,window=128")
        if key not in known:
            raise FusionError(f"--shape: {operator.name} has no parameter {key!r}", remedy=did_you_mean(key, known))
        found[key] = _typed(operator.name, known[key], text)
    return found


def _typed(name: str, parameter: inspect.Parameter, text: str) -> Parameter:
    kinds = _kinds(parameter.annotation)
    if text.lower() == "none" and type(None) in kinds:
        return None
    for kind in (bool, int, float, str):
        if kind in kinds:
            value = _convert(kind, text)
            if value is not None:
                return value
    wanted = " or ".join([_ARTICLE[k] for k in (bool, int, float, str) if k in kinds] + (["none"] if type(None) in kinds else []))
    raise FusionError(f"--shape {parameter.name}={text}: expected {wanted or 'another type'}", where=name)


def _kinds(annotation: object) -> tuple[object, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _convert(kind: type[bool] | type[int] | type[float] | type[str], text: str) -> Parameter:
    if kind is bool:
        return {"true": True, "false": False}.get(text.lower())
    try:
        return kind(text)
    except ValueError:
        return None


def _dtype(operator: Operator[...], dtype: str) -> str:
    name = ALIASES.get(dtype, dtype)
    if name not in DTYPE_BYTES:
        raise FusionError(f"--dtype {dtype}: no such dtype", remedy=did_you_mean(dtype, [*DTYPE_BYTES, *ALIASES]))
    if "dtype" not in operator.parameters:
        raise FusionError(f"--dtype {dtype}: {operator.name} has no parameter dtype", remedy="leave --dtype out")
    return name
