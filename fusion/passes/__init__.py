"""Passes: rewrites of a stage graph, a plan or TIR, found by name and run with a check after each. See docs/add_a_pass.md.

Importing this package imports neither torch nor networkx; a pass's own module is imported when the pass is asked for.
"""

from __future__ import annotations

from fusion.passes.base import AnyPass, CompilerPass, GraphPass, Level, Option, Pass, PassResult, PlanPass
from fusion.passes.options import format_pipeline, listed, make_pass, parse_pipeline
from fusion.passes.registry import GROUP, PassInfo, find, registry
from fusion.passes.runner import PipelineResult, run_graph_pipeline, run_pipeline

__all__ = [
    "GROUP", "AnyPass", "CompilerPass", "GraphPass", "Level", "Option", "Pass", "PassInfo", "PassResult", "PipelineResult", "PlanPass",
    "find", "format_pipeline", "listed", "make_pass", "parse_pipeline", "registry", "run_graph_pipeline", "run_pipeline",
]  # fmt: skip
