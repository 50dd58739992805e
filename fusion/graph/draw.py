"""A stage graph as Graphviz or Mermaid text, Cube and Vector stages told apart; kernels of a plan become boxes."""

from __future__ import annotations

from collections.abc import Sequence

from fusion.graph.stagegraph import StageGraph

Box = tuple[str, Sequence[str]]  # a kernel's name and its stages


def _boxes(graph: StageGraph, kernels: Sequence[Box]) -> list[Box]:
    inside = {s for _, stages in kernels for s in stages}
    return [*kernels, ("", [s.name for s in graph.stages if s.name not in inside])]


def to_dot(graph: StageGraph, kernels: Sequence[Box] = ()) -> str:
    """Graphviz text; `kernels` draws each as a cluster."""
    lines = [f'digraph "{graph.name}" {{', "  rankdir=TB;"]
    for i, (name, stages) in enumerate(_boxes(graph, kernels)):
        indent = "    " if name else "  "
        lines += [f"  subgraph cluster_{i} {{", f'    label="{name}";'] if name else []
        lines += [f'{indent}"{s}" [shape={"box" if graph.stage(s).unit == "cube" else "ellipse"}];' for s in stages]
        lines += ["  }"] if name else []
    lines += [f'  "{u}" -> "{v}" [label="{", ".join(d["values"])}"];' for u, v, d in graph.graph.edges(data=True)]
    return "\n".join([*lines, "}"]) + "\n"


def to_mermaid(graph: StageGraph, kernels: Sequence[Box] = ()) -> str:
    """Mermaid flowchart text; `kernels` draws each as a subgraph."""
    lines = ["flowchart TB"]
    for i, (name, stages) in enumerate(_boxes(graph, kernels)):
        lines += [f'  subgraph k{i}["{name}"]'] if name else []
        lines += [f"    {s}[{s}]" if graph.stage(s).unit == "cube" else f"    {s}({s})" for s in stages]
        lines += ["  end"] if name else []
    lines += [f"  {u} -->|{', '.join(d['values'])}| {v}" for u, v, d in graph.graph.edges(data=True)]
    return "\n".join(lines) + "\n"
