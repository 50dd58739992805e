# pyright: basic
"""Entry point of the worker, run by the compiler's Python: makes the worker package importable by itself, then serves or checks.

`fusion` is not on that Python's path and must not be: its dependencies are not installed there.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

PACKAGE = "fusion_plan_worker"


def _package(folder: Path) -> None:
    spec = importlib.util.spec_from_file_location(PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = module
    spec.loader.exec_module(module)


def main() -> None:
    folder = Path(__file__).resolve().parent
    sys.path = [entry for entry in sys.path if Path(entry or ".").resolve() != folder]
    _package(folder)
    module = {"serve": ".server", "check": ".selfcheck"}[sys.argv[1]]
    importlib.import_module(PACKAGE + module).main(sys.argv[2:])


if __name__ == "__main__":
    main()
