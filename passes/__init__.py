"""Rewrites of graphs, plans and TIR: one pass a file. Importing this package imports none of them, so that a listing is quick."""

from __future__ import annotations

PASSES: dict[str, str] = {
    "accumulate-atomically": "passes.accumulate_atomically:AccumulateAtomically",
    "compensate-gemm": "passes.compensate_gemm:CompensateGemm",
    "free-handoff": "passes.free_handoff:FreeHandoff",
    "name-workspaces": "passes.name_workspaces:NameWorkspaces",
    "retain-in-ub": "passes.retain_in_ub:RetainInUb",
    "split-oversize": "passes.split_oversize:SplitOversize",
    "workspace-names": "passes.workspace_names:WorkspaceNames",
}
"""Where each pass is: `module:Class`."""

PIPELINES: dict[str, str] = {
    "default": "retain-in-ub,compensate-gemm{retile=true},name-workspaces,free-handoff,workspace-names",
    "fast": "retain-in-ub,name-workspaces,free-handoff,workspace-names",
    "repair": "name-workspaces,free-handoff,split-oversize,workspace-names",
}
"""Pipelines by name: `default` runs unless another is asked for, `fast` leaves out the second gemms that make up for rounded operands,
`repair` makes a plan that was written by hand legal where that is possible."""
