"""The page that lists all passes, from their docstrings: `python -m fusion.passes.catalogue > docs/passes.md`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from fusion.passes.registry import OWN, PassInfo, registry

HEAD = """# Passes

A pass rewrites a stage graph, a plan, or the compiler's TIR, and leaves the meaning as it is. `fusion-plan passes` lists what is installed,
`--passes a,b{option=1}` or `--passes NAME_OF_A_PIPELINE` runs some. After each, every invariant and rule is checked, and a pass that breaks
one is named. Graph passes run before the plan is made, or on a plan, whose handoffs are then worked out again. `docs/add_a_pass.md` shows
how to write one. This page is generated: `python -m fusion.passes.catalogue > docs/passes.md`.
"""


def description(info: PassInfo) -> str:
    """A pass's docstring without its indentation."""
    return inspect.cleandoc(info.cls.__doc__ or "")


def signature(info: PassInfo) -> str:
    """The name with its options and their defaults, as in the text of a pipeline."""
    options = (f"{o.name}={str(o.default).lower() if isinstance(o.default, bool) else o.default}" for o in info.options)
    inside = ",".join(options)
    return f"{info.name}{{{inside}}}" if inside else info.name


def page() -> Iterator[str]:
    """The lines of docs/passes.md: the pipelines, then every pass that comes with the toolkit."""
    import passes

    yield from HEAD.splitlines()
    yield from ("", "| pipeline | passes |", "|-|-|")
    yield from (f"| `{name}` | `{text}` |" for name, text in passes.PIPELINES.items())
    for info in (i for i in registry().values() if i.owner == OWN):
        yield from ("", f"## {info.name} ({info.level})", "", "```text", signature(info), "", description(info), "```")


if __name__ == "__main__":
    print("\n".join(page()))
