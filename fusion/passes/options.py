"""The text form of a pipeline: `retain-in-ub,compensate-gemm{stages=dk+dq,retile=true}`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from fusion.errors import FusionError, did_you_mean
from fusion.passes.base import AnyPass, Option, Setting
from fusion.passes.registry import PassInfo, find

_ITEM = re.compile(r"\s*([^,{}\s]+)\s*(?:\{([^{}]*)\})?\s*(?:,|\Z)")
_ARTICLE = {int: "an int", float: "a float", bool: "true or false", str: "a text"}


def listed(option: str) -> tuple[str, ...]:
    """The names in an option's text: `dk+dq` is two."""
    return tuple(n for n in re.split(r"[+\s]+", option) if n)


def chosen(option: str, known: Iterable[str], what: str) -> tuple[str, ...]:
    """The names in an option, each of which must be known; all known ones if the option is empty."""
    names, names_known = listed(option), tuple(known)
    for n in names:
        if n not in names_known:
            raise FusionError(f"no {what} {n!r}", remedy=did_you_mean(n, names_known))
    return names or names_known


def parse_pipeline(text: str) -> tuple[AnyPass, ...]:
    """The passes of a pipeline in order; the names of `passes.PIPELINES` stand for theirs. Raises FusionError for what is unknown."""
    import passes

    found: list[AnyPass] = []
    at = 0
    while at < len(text.rstrip()):
        m = _ITEM.match(text, at)
        if m is None:
            raise FusionError(f"cannot read {text[at:]!r} in the pipeline {text!r}", remedy="write it like a,b{option=1,flag=true}")
        if m[1] in passes.PIPELINES and m[2] is None:
            found += parse_pipeline(passes.PIPELINES[m[1]])
        else:
            found.append(make_pass(find(m[1]), _settings(m[1], m[2] or "")))
        at = m.end()
    return tuple(found)


def _settings(name: str, text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in (i.strip() for i in text.split(",") if i.strip()):
        key, equals, value = (p.strip() for p in item.partition("="))
        if not equals:
            raise FusionError(f"option {item!r} has no value", where=f"pass {name}", remedy=f"write {item}=VALUE")
        if key in found:
            raise FusionError(f"option {key} is given twice", where=f"pass {name}")
        found[key] = value
    return found


def make_pass(info: PassInfo, settings: Mapping[str, str]) -> AnyPass:
    """The pass with options from texts. Raises FusionError for an unknown option or a text of the wrong type."""
    options = {o.name: o for o in info.options}
    for key in settings:
        if key not in options:
            known = did_you_mean(key, options) if options else "it has no options"
            raise FusionError(f"no option {key!r}", where=f"pass {info.name}", remedy=known)
    values = {key: _value(info.name, options[key], text) for key, text in settings.items()}
    return info.cls(**values)


def _value(name: str, option: Option, text: str) -> Setting:
    kind = option.kind
    if kind is bool and text in ("true", "false"):
        return text == "true"
    try:
        if kind is not bool:
            return kind(text)
    except ValueError:
        pass
    raise FusionError(f"option {option.name}={text}: expected {_ARTICLE[kind]}", where=f"pass {name}")


def format_pipeline(passes: Iterable[AnyPass]) -> str:
    """The text that parses to these passes; options at their default are left out."""
    return ",".join(map(_text, passes))


def _text(p: AnyPass) -> str:
    given = [(o.name, getattr(p, o.name)) for o in p.options() if getattr(p, o.name) != o.default]
    inside = ",".join(f"{n}={str(v).lower() if isinstance(v, bool) else v}" for n, v in given)
    return f"{p.name}{{{inside}}}" if inside else p.name
