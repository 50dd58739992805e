"""`fusion-plan list` and `fusion-plan passes`: what there is."""

from __future__ import annotations

import inspect
import json
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fusion.passes import PassInfo


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def operators(as_json: bool) -> None:
    """The operators that come with the toolkit, with their parameters."""
    import kernels

    found = {name: kernels.load(name) for name in kernels.names()}
    if as_json:
        entries = [{"name": n, "doc": o.doc, "parameters": {p.name: p.default for p in o.parameters.values()}} for n, o in found.items()]
        click.echo(json.dumps({"operators": entries}, indent=1))
        return
    for name, operator in found.items():
        click.echo(f"{name:<16} {operator.doc}")
        click.echo(click.wrap_text(", ".join(map(_parameter, operator.parameters.values())), 110, " " * 17, " " * 17))


def _parameter(p: inspect.Parameter) -> str:
    return p.name if p.default is inspect.Parameter.empty else f"{p.name}={str(p.default).lower() if p.default is None else p.default}"


@click.command("passes")
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def passes(name: str | None, as_json: bool) -> None:
    """All passes and the pipelines made of them; with NAME all about one pass."""
    from fusion.passes import find, registry

    known = [find(name)] if name else list(registry().values())
    if as_json:
        click.echo(json.dumps({"passes": [_entry(p) for p in known]}, indent=1))
    elif name:
        _one(name)
    else:
        _all()


def _entry(p: PassInfo) -> dict[str, object]:
    return {"name": p.name, "level": p.level, "owner": p.owner, "doc": p.doc, "options": {o.name: o.default for o in p.options}}


def _all() -> None:
    from fusion.passes import registry
    from passes import PIPELINES

    infos = registry()
    width = max(map(len, infos))
    for info in infos.values():
        owner = "" if info.owner == "fusion-plan" else f" [{info.owner}]"
        click.echo(f"{info.name:<{width}}  {info.level:<5}  {info.doc}{owner}")
    click.echo("")
    for name, text in PIPELINES.items():
        click.echo(f"pipeline {name}: {text}")


def _one(name: str) -> None:
    from fusion.passes import find

    info = find(name)
    click.echo(f"{info.name} ({info.level} level, from {info.owner}: {info.target})\n")
    click.echo(inspect.getdoc(info.cls) or "")
    for option in info.options:
        click.echo(f"\n  {option.name}: {option.kind.__name__} = {option.default!r}")
