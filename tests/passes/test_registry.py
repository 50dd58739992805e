"""Passes are found by name, their names are the same everywhere, and two owners of one name are refused."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import passes
from fusion.errors import FusionError
from fusion.passes import CompilerPass, PassInfo, find, registry
from fusion.passes.registry import joined

ROOT = Path(__file__).parents[2]


def test_the_package_is_quick_to_import() -> None:
    code = "import sys, fusion.passes, passes; sys.exit(any(m in sys.modules for m in ('torch', 'networkx', 'fusion.graph')))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


def test_every_pass_has_one_name_everywhere() -> None:
    for name, target in passes.PASSES.items():
        module, cls = target.split(":")
        assert module == "passes." + name.replace("-", "_")
        assert cls == "".join(part.capitalize() for part in name.split("-"))
        assert find(name).cls.name == name
    files = {p.stem.replace("_", "-") for p in (ROOT / "passes").glob("*.py") if p.stem != "__init__"}
    assert files == set(passes.PASSES)


def test_every_docstring_shows_before_and_after_and_when_it_refuses() -> None:
    for name in passes.PASSES:
        doc = find(name).cls.__doc__ or ""
        assert all(word in doc for word in ("Before:", "After:", "Refuses when:", "Source:")), name
        assert find(name).doc.endswith("."), name


def test_every_option_is_explained() -> None:
    for name in passes.PASSES:
        doc = find(name).cls.__doc__ or ""
        assert [o.name for o in find(name).options if o.name not in doc] == [], name


def test_the_listing_is_sorted() -> None:
    assert list(registry()) == sorted(registry())


def test_an_unknown_name_gets_the_closest() -> None:
    with pytest.raises(FusionError, match=r"no pass 'retain-ub'\n  did you mean retain-in-ub"):
        find("retain-ub")


def test_a_name_with_two_owners_is_refused() -> None:
    mine, theirs = PassInfo("a", "passes.a:A"), PassInfo("a", "other.a:A", "other-plugin")
    with pytest.raises(FusionError, match=r"a is defined by fusion-plan \(passes.a:A\) and by other-plugin \(other.a:A\)"):
        joined([mine, theirs])
    assert joined([mine, mine]) == {"a": mine}


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("nowhere.at_all:A", "cannot import nowhere.at_all:A: No module"),
        ("passes.name_workspaces:Nothing", "cannot import passes.name_workspaces:Nothing"),
        ("passes.name_workspaces:MARK", "is no dataclass derived from"),
        ("passes.name_workspaces:NameWorkspaces", "calls itself 'name-workspaces'"),
    ],
)
def test_a_broken_plugin_is_named(target: str, why: str) -> None:
    with pytest.raises(FusionError, match=re.escape("pass a of other-plugin: ") + ".*" + re.escape(why)):
        _ = PassInfo("a", target, "other-plugin").cls


def test_the_compiler_runs_workspace_names_where_its_file_says() -> None:
    info = find("workspace-names")
    made = info.cls(rename=True)
    assert isinstance(made, CompilerPass)
    spec = made.spec()
    tree = ast.parse(spec.source)
    constants = {
        t.id: n.value.value
        for n in tree.body
        if isinstance(n, ast.Assign) and isinstance(n.value, ast.Constant)
        for t in n.targets
        if isinstance(t, ast.Name)
    }
    assert spec.name == "workspace-names"
    assert spec.at == constants["AT"]
    assert spec.options == {"rename": True}
    assert any(isinstance(n, ast.FunctionDef) and n.name == "run" for n in tree.body)
