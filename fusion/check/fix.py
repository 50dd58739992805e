"""Safe remedies as edits of the source: rename a workspace, switch combining on, give each handoff its fragment, drop a repeated read."""

from __future__ import annotations

import ast
import difflib
import io
import re
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fusion.check.report import FileReport, Finding
from fusion.rules import names


@dataclass(frozen=True)
class Fixed:
    """A source after its fixes: what was done, and what was not and why."""

    text: str
    done: tuple[str, ...]
    left: tuple[str, ...]


class CannotFix(Exception):
    """A remedy that is not safe here; the text says why."""


def fix(report: FileReport) -> Fixed:
    """Apply every safe remedy, one finding after the other, from the last line up so that lines keep their numbers."""
    text, done, left = report.text, list[str](), list[str]()
    findings = {(f.rule, f.line, f.fix): f for kernel in report.kernels for f in kernel.findings if f.severity == "error"}
    for finding in sorted(findings.values(), key=lambda f: -f.line):
        action, _, name = finding.fix.partition(" ")
        if action not in ACTIONS:
            left.append(f"line {finding.line}: {finding.rule} is not fixed: {finding.remedy}")
            continue
        try:
            text, what = ACTIONS[action](text, finding, name)
            done.append(what)
        except CannotFix as reason:
            left.append(f"line {finding.line}: {finding.rule} is not fixed: {reason}")
    return Fixed(text, tuple(done), tuple(left))


def diff(path: Path, before: str, after: str) -> str:
    """A unified diff, empty if nothing changed."""
    pieces = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}")
    return "".join(pieces)


# ---- places in the source


def _function_at(text: str, line: int) -> ast.FunctionDef:
    """The outermost function around a line."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or node.lineno):
            return node
    raise CannotFix("the kernel is not inside of one function of this file")


def _statements(text: str) -> Iterator[ast.stmt]:
    yield from (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt))


def _statement_at(text: str, line: int) -> ast.stmt:
    """The innermost statement that covers a line."""
    around = [s for s in _statements(text) if s.lineno <= line <= (s.end_lineno or s.lineno)]
    if not around:
        raise CannotFix("its statement was not found")
    return max(around, key=lambda s: (s.lineno, -(s.end_lineno or s.lineno)))


def _names_between(text: str, name: str, first: int, last: int) -> list[tuple[int, int]]:
    """(line, column) of every use of a name, attributes left out."""
    found: list[tuple[int, int]] = []
    before = ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME and token.string == name and before != "." and first <= token.start[0] <= last:
            found.append(token.start)
        before = token.string
    return found


def _replace(text: str, places: Sequence[tuple[int, int]], old: str, new: str) -> str:
    lines = text.splitlines(True)
    for line, column in sorted(places, reverse=True):
        row = lines[line - 1]
        lines[line - 1] = row[:column] + new + row[column + len(old) :]
    return "".join(lines)


# ---- the remedies


def _rename(text: str, finding: Finding, name: str) -> tuple[str, str]:
    function = _function_at(text, finding.line)
    first, last = function.lineno, function.end_lineno or function.lineno
    taken = set(re.findall(r"\w+", text))
    fresh = names.renamed(name, frozenset(taken))
    places = _names_between(text, name, first, last)
    if not places:
        raise CannotFix(f"{name} does not stand in the source by that name")
    return _replace(text, places, name, fresh), f"renamed {name} to {fresh}"


COMBINE_OFF = re.compile(r"((?:TL_ASCEND_AUTO_CV_COMBINE|[\"']tl\.ascend_auto_cv_combine[\"'])\s*:\s*)False")
SYNC_ON = re.compile(
    r"^(?P<head>\s*)(?P<key>[\w.]*TL_ASCEND_AUTO_CV_SYNC|[\"']tl\.ascend_auto_cross_core_sync[\"'])\s*:\s*True\s*,?[ ]*\n", re.MULTILINE
)


def _combine(text: str, finding: Finding, _name: str) -> tuple[str, str]:
    changed, count = COMBINE_OFF.subn(r"\g<1>True", text)
    if not count:
        changed, count = SYNC_ON.subn(_with_combine, text)
    if not count:
        raise CannotFix("the configuration is not written as a table in this file")
    return changed, "set TL_ASCEND_AUTO_CV_COMBINE to True"


def _with_combine(found: re.Match[str]) -> str:
    key = found["key"].replace("AUTO_CV_SYNC", "AUTO_CV_COMBINE").replace("cross_core_sync", "cv_combine")
    return f"{found['head']}{key}: True,\n{found[0]}"


def _hoist(text: str, finding: Finding, name: str) -> tuple[str, str]:
    """Drop a read that loads the same tile from the same place again."""
    reads = sorted({p.line for p in finding.places if p.label == "read here"})
    writes = {p.line for p in finding.places if p.label == "written here"}
    if len(reads) <= len(writes):
        raise CannotFix(f"{name} is written more often than it is read")
    statements = [_statement_at(text, line) for line in reads]
    first = ast.unparse(statements[0])
    target = _copied_to(statements[0])
    for again in reversed(statements[1:]):
        if ast.unparse(again) != first:
            raise CannotFix("the reads load different parts, or into different tiles")
        if any(reads[0] < line <= again.lineno for line in writes):
            raise CannotFix(f"{name} is written between its reads")
        _check_untouched(text, target, statements[0].lineno, again.lineno)
        text = _without(text, again)
    return text, f"dropped the repeated read of {name}"


def _copied_to(statement: ast.stmt) -> str:
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or len(call.args) < 2 or not isinstance(call.args[1], ast.Name):
        raise CannotFix("the read is not a plain T.copy into a tile")
    return call.args[1].id


def _check_untouched(text: str, tile: str, first: int, last: int) -> None:
    """Between the reads, the tile may only be an operand of gemms (which do not change it)."""
    for statement in _statements(text):
        if not first < statement.lineno < last or isinstance(statement, ast.For | ast.With | ast.If):
            continue
        written = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and statement.value.args
        call = statement.value if isinstance(statement, ast.Expr) else None
        reads_only = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "gemm_v0"
        uses = any(isinstance(node, ast.Name) and node.id == tile for node in ast.walk(statement))
        if uses and not (written and reads_only):
            raise CannotFix(f"{tile} may change between the reads")


def _without(text: str, statement: ast.stmt) -> str:
    lines = text.splitlines(True)
    del lines[statement.lineno - 1 : statement.end_lineno or statement.lineno]
    return "".join(lines)


def _fragments(text: str, finding: Finding, name: str) -> tuple[str, str]:
    """Give every handoff after the first a fragment of its own, from the gemm that fills it on."""
    function = _function_at(text, finding.line)
    last = function.end_lineno or function.lineno
    copies = sorted({place.line for place in finding.places})
    alloc = _allocation(text, name, function)
    added: list[str] = []
    for number, copy in enumerate(reversed(copies[1:])):
        fresh = f"{name}_{len(copies) - number}"
        begin = _filled_at(text, name, copies[copies.index(copy) - 1], copy)
        end = last if copy == copies[-1] else copy
        text = _replace(text, _names_between(text, name, begin, end), name, fresh)
        added.append(fresh)
    row = text.splitlines(True)[alloc.lineno - 1 : alloc.end_lineno or alloc.lineno]
    block = "".join(re.sub(rf"\b{re.escape(name)}\b", fresh, "".join(row)) for fresh in sorted(added))
    lines = text.splitlines(True)
    lines.insert(alloc.end_lineno or alloc.lineno, block)
    return "".join(lines), f"gave each handoff of {name} its own fragment: {', '.join(sorted(added))}"


def _allocation(text: str, name: str, function: ast.FunctionDef) -> ast.stmt:
    for statement in _statements(text):
        inside = function.lineno <= statement.lineno <= (function.end_lineno or 0)
        if inside and isinstance(statement, ast.Assign) and [ast.unparse(t) for t in statement.targets] == [name]:
            return statement
    raise CannotFix(f"{name} is not allocated by a plain assignment")


def _filled_at(text: str, name: str, after: int, before: int) -> int:
    """The gemm with init=True between two handoffs, from which on the fragment holds something new."""
    for statement in sorted(_statements(text), key=lambda s: s.lineno):
        if not after < statement.lineno < before or not isinstance(statement, ast.Expr):
            continue
        if any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(statement)):
            if "init=True" in ast.unparse(statement).replace(" ", ""):
                return statement.lineno
            break
    raise CannotFix(f"{name} is not filled anew (init=True) between its handoffs")


ACTIONS: dict[str, Callable[[str, Finding, str], tuple[str, str]]] = {
    "rename": _rename,
    "combine": _combine,
    "hoist": _hoist,
    "fragment": _fragments,
}
