"""`fusion-plan show`: an operator's stage graph."""

from __future__ import annotations

import click


@click.command("show")
@click.argument("operator")
@click.option("--as", "form", type=click.Choice(["text", "json", "dot", "mermaid"]), default="text", show_default=True, help="The form.")
@click.option("--json", "as_json", is_flag=True, help="The same as --as json.")
@click.option("--shape", multiple=True, metavar="K=V,...", help="Parameters of the operator, like seq_len=8192,window=none.")
@click.option("--dtype", default="", metavar="TYPE", help="The operator's dtype, like bfloat16.")
def show(operator: str, form: str, as_json: bool, shape: tuple[str, ...], dtype: str) -> None:
    """The stage graph of OPERATOR (a name from `fusion-plan list`, or path/to/op.py[:name])."""
    from fusion.cli.contradictions import exclusive
    from fusion.cli.operators import build
    from fusion.graph import to_text
    from fusion.graph.draw import to_dot, to_mermaid
    from fusion.graph.jsonform import to_json

    if as_json and form != "json":
        exclusive("--json", "--as", why="both name the form")
    graph = build(operator, shape, dtype)
    writers = {"text": to_text, "json": to_json, "dot": to_dot, "mermaid": to_mermaid}
    click.echo(writers["json" if as_json else form](graph).rstrip("\n"))
