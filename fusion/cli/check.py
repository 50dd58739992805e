"""`fusion-plan check`: verdicts for TileLang-Ascend kernels that people already have."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from fusion.check import driver, fix, sarif, text
from fusion.check.report import FileReport, exit_code
from fusion.cli.contradictions import exclusive, needs
from fusion.errors import FusionError

SKIPPED_FOLDERS = ("__pycache__", ".git", ".venv", "node_modules", "build")


@click.command("check")
@click.argument("paths", nargs=-1, required=True)
@click.option("--kernel", default="", metavar="NAME", help="Check only the kernel of this name.")
@click.option(
    "--args",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    help="Values for the parameters of the factories that have them; several after one --args, or repeated.",
)
@click.option(
    "--shape",
    multiple=True,
    metavar="NAME=SIZE",
    help="Values for sizes that kernels leave open, and for scalars; several after one --shape, or repeated.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON list on standard output, an entry a kernel; a diff of --fix goes to standard error."
)
@click.option(
    "--sarif", "sarif_path", type=click.Path(dir_okay=False, path_type=Path), help="Also write the findings as SARIF to this file."
)
@click.option("--fix", "fixing", is_flag=True, help="Show safe remedies as a diff, and check the result.")
@click.option("--write", is_flag=True, help="With --fix: write the files.")
@click.option("--no-time", is_flag=True, help="Leave out the timeline and its hints.")
@click.option("--no-run", is_flag=True, help="Stop after the compiler; nothing is simulated.")
def check(
    paths: tuple[str, ...],
    kernel: str,
    arguments: tuple[str, ...],
    shape: tuple[str, ...],
    as_json: bool,
    sarif_path: Path | None,
    fixing: bool,
    write: bool,
    no_time: bool,
    no_run: bool,
) -> None:
    """Compile, run and judge the kernels of Python files, without a device; of a folder, of its files that mention tilelang.

    Exit status: 0 all clean, 1 there are findings, 2 something could not be judged.
    """
    needs("--write", "--fix", why="there is nothing to write")
    exclusive("--no-run", "--shape", why="nothing is run that could have a shape")
    files, loose = _split(paths)
    for_args = () if shape and not arguments else loose
    for_shape = loose if shape and not arguments else ()
    options = driver.Options(kernel, _values((*arguments, *for_args)), _sizes((*shape, *for_shape)), not no_run, not no_time)
    if not files:
        raise FusionError("no Python file with a kernel here", where=", ".join(paths), remedy="files that import tilelang are checked")
    reports = _check(files, options, as_json)
    reports = _fix(reports, options, write, as_json) if fixing else reports
    _show(reports, as_json, sarif_path, len(files) > 1)
    raise SystemExit(exit_code(kernel for file in reports for kernel in file.kernels))


# ---- arguments


def _split(paths: Sequence[str]) -> tuple[list[Path], list[str]]:
    """Files, and `name=value` words that follow an option with several values."""
    files: list[Path] = []
    loose: list[str] = []
    for word in paths:
        path = Path(word)
        if "=" in word and not path.exists():
            loose.append(word)
        elif path.is_dir():
            files += _in_folder(path)
        elif path.exists():
            files.append(path)
        else:
            raise FusionError("no such file or folder", where=word, remedy="give Python files with kernels, or folders of them")
    return files, loose


def _in_folder(folder: Path) -> list[Path]:
    """Python files that mention tilelang."""
    found = [path for path in sorted(folder.rglob("*.py")) if not set(path.parts) & set(SKIPPED_FOLDERS)]
    return [path for path in found if "tilelang" in path.read_text(encoding="utf-8", errors="replace")]


def _pairs(words: Iterable[str], option: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for word in (piece for given in words for piece in given.split() if piece):
        name, equals, content = word.partition("=")
        if not equals or not name.isidentifier():
            raise FusionError(f"{word!r} is not NAME=VALUE", where=option, remedy=f"write it like {option} M=256 block_M=64")
        pairs.append((name, content))
    return pairs


def _values(words: Iterable[str]) -> dict[str, object]:
    return {name: _literal(content) for name, content in _pairs(words, "--args")}


def _literal(content: str) -> object:
    try:
        return ast.literal_eval(content)
    except (ValueError, SyntaxError):
        return content


def _sizes(words: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, content in _pairs(words, "--shape"):
        if not content.isdigit():
            raise FusionError(f"{name}={content}: a size is a whole number", where="--shape", remedy="write it like --shape M=256")
        found[name] = int(content)
    return found


# ---- work


def _check(files: Sequence[Path], options: driver.Options, quiet: bool) -> list[FileReport]:
    sources = [driver.read_source(path) for path in files]
    return _with_progress(sources, options, quiet)


def _with_progress(sources: Sequence[driver.Source], options: driver.Options, quiet: bool) -> list[FileReport]:
    """On a terminal, one line that says what is being done."""
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        return driver.check_sources(sources, options)
    with console.status("starting") as status:
        return driver.check_sources(sources, options, lambda what: status.update(what))


def _fix(reports: Sequence[FileReport], options: driver.Options, write: bool, quiet: bool) -> list[FileReport]:
    """Show or write the fixes, check what they give, and say what they cannot mend."""
    fixed = [fix.fix(report) for report in reports]
    for report, result in zip(reports, fixed, strict=True):
        click.echo(fix.diff(report.path, report.text, result.text), nl=False, err=quiet)
        for line in result.done:
            click.echo(f"{report.path}: {line}", err=True)
        if write and result.text != report.text:
            report.path.write_text(result.text, encoding="utf-8")
    changed = [i for i, (report, result) in enumerate(zip(reports, fixed, strict=True)) if result.text != report.text]
    again = _with_progress([driver.Source(reports[i].path, fixed[i].text) for i in changed], options, quiet)
    after = dict(zip(changed, again, strict=True))
    final = [after.get(i, report) for i, report in enumerate(reports)]
    for report in final:
        for line in fix.fix(report).left:
            click.echo(f"{report.path}: {line}", err=True)
    return final


# ---- output


def _show(reports: Sequence[FileReport], as_json: bool, sarif_path: Path | None, many: bool) -> None:
    if sarif_path is not None:
        sarif_path.write_text(json.dumps(sarif.to_sarif(reports, _version()), indent=2) + "\n", encoding="utf-8")
    if as_json:
        click.echo(json.dumps([kernel.to_json() for file in reports for kernel in file.kernels], indent=1))
        return
    for report in reports:
        if not many or any(kernel.verdict != "clean" for kernel in report.kernels):
            click.echo("\n".join(text.lines(report)))
    if many:
        click.echo("\n".join(text.summary(reports)))


def _version() -> str:
    try:
        return version("fusion-plan")
    except PackageNotFoundError:
        return "0"
