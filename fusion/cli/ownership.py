"""Whether the packages that were imported are ours: `fusion`, `passes` and `kernels` are names that others use too."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from fusion.errors import FusionError

ROOT = Path(__file__).resolve().parents[2]
MARKS = {"fusion": "errors", "passes": "PASSES", "kernels": "OPERATORS"}  # what only ours has


def check_packages() -> None:
    """Raises FusionError naming the distribution that owns one of our top-level packages."""
    for name, mark in MARKS.items():
        try:
            module = import_module(name)
        except ImportError as error:
            raise FusionError(f"package {name!r} is missing: {error}", remedy="reinstall fusion-plan") from error
        file = Path(module.__file__).resolve() if module.__file__ else None
        if file is None or file.parent != ROOT / name or not hasattr(module, mark):
            place = file.parent if file else "a folder without __init__.py"
            raise FusionError(
                f"the package {name!r} in {place} is not fusion-plan's{_owner(name)}",
                remedy="uninstall the other one, or install fusion-plan into a fresh virtual environment (python -m venv)",
            )


def _owner(package: str) -> str:
    from importlib.metadata import packages_distributions

    others = sorted({d for d in packages_distributions().get(package, []) if d != "fusion-plan"})
    return f": it belongs to the distribution {' or '.join(others)}" if others else ""
