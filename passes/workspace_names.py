"""workspace-names: the same as name-workspaces, checked on what the compiler really sees."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from fusion.passes import CompilerPass


@dataclass(frozen=True)
class WorkspaceNames(CompilerPass):
    """Reports, or with rename=true repairs, GM buffers that one unit writes and the other reads without "workspace" in the name.

    Before: copy_ub_to_gm(scratch) ... copy_gm_to_l1(scratch)                          CombineCV inserts no flag
    After:  copy_ub_to_gm(workspace_scratch) ... copy_gm_to_l1(workspace_scratch)      flag set after the store, waited for before the load

    Refuses when: never; without rename every such buffer is a finding of the lowering.
    Source: runs just before CombineCV, which goes by the name. The pass itself is `passes/tir/workspace_names.py`.
    """

    name: ClassVar[str] = "workspace-names"
    file: ClassVar[Path] = Path(__file__).parent / "tir" / "workspace_names.py"
    at: ClassVar[str] = "before CombineCV"
    rename: bool = False
