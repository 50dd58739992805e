"""Finding operators: the table, and a user's file with all that can be wrong with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import kernels
from fusion.errors import FusionError

GOOD = """\
from fusion.graph import Graph, StageGraph, operator
from kernels.linear import gemm  # an operator of someone else

@operator
def {name}(size: int = 4) -> StageGraph:
    g = Graph("{name}")
    g.dim("i", size)
    x = g.input("x", "i", "float32")
    with g.vector("v"):
        y = g.let("y", x * 2.0)
    g.output(y)
    return g.build()
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "op.py"
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", kernels.names())
def test_names_are_those_of_the_functions_and_defaults_build(name: str) -> None:
    found = kernels.load(name)
    assert found.name == name == found().name
    assert found.doc.endswith(".")
    assert all(p.default is not p.empty for p in found.parameters.values())


def test_importing_the_table_loads_nothing_heavy() -> None:
    check = "import kernels, sys; kernels.names(); print([m for m in ('torch', 'networkx', 'numpy') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_building_a_graph_does_not_need_torch() -> None:
    check = "import kernels, sys; [kernels.load(n)() for n in kernels.names()]; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True).stdout.strip() == "False"


def test_a_mistyped_name() -> None:
    with pytest.raises(FusionError) as error:
        kernels.load("gqa_sink_bwt")
    assert str(error.value) == "no operator 'gqa_sink_bwt'\n  did you mean gqa_sink_bwd?"


def test_the_only_operator_of_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD.format(name="double"))
    assert kernels.load(str(path)).name == "double"
    assert kernels.load_from_file(f"{path}:double")().dim("i").size == 4


def test_several_operators_of_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD.format(name="one") + GOOD.format(name="two"))
    assert kernels.load(f"{path}:two").name == "two"
    with pytest.raises(FusionError) as error:
        kernels.load(str(path))
    assert f"2 operators in this file\n  say which: {path}:one or {path}:two" in str(error.value)
    with pytest.raises(FusionError, match="did you mean two"):
        kernels.load(f"{path}:twoo")


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("x = (\n", ":1", "SyntaxError"),
        ("import fusion\n\nfusion.nonsense\n", ":3", "AttributeError: module 'fusion' has no attribute 'nonsense'"),
        ("from fusion.graph import Graph\nGraph('a').dim('q', 0)\n", ":2", "dim q has size 0"),
        ("import sys\nsys.exit(3)\n", ":2", "SystemExit: 3"),
        ("import nothing_of_this_name\n", ":1", "ModuleNotFoundError"),
        ("from kernels.linear import gemm\n", "", "no operator in this file"),
        ("", "", "no operator in this file"),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path: Path, text: str, where: str, message: str) -> None:
    path = written(tmp_path, text)
    before = list(sys.path)
    with pytest.raises(FusionError) as error:
        kernels.load(str(path))
    assert str(error.value).startswith(f"{path}{where}: ")
    assert message in str(error.value)
    assert sys.path == before


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(FusionError, match="no file"):
        kernels.load("nowhere/op.py:x")


def test_a_file_may_import_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_op.py").write_text("SIZE = 12\n")
    text = "from neighbour_of_op import SIZE\n" + GOOD.format(name="double").replace("= 4", "= SIZE")
    assert kernels.load(str(written(tmp_path, text)))().dim("i").size == 12
