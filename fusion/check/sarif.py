"""Reports as SARIF 2.1.0, which code review tools show beside the lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from fusion.check.report import FileReport, Finding, Report

Json: TypeAlias = "dict[str, object]"
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def to_sarif(files: Sequence[FileReport], version: str) -> Json:
    """One run with all findings; a rule is listed with the remedy of its first finding."""
    reports = [report for file in files for report in file.kernels]
    found = [(report, finding) for report in reports for finding in report.findings]
    rules: dict[str, Json] = {}
    for _, finding in found:
        rules.setdefault(
            finding.rule, {"id": finding.rule, "shortDescription": {"text": finding.why or finding.rule}, "help": {"text": finding.remedy}}
        )
    driver: Json = {"name": "fusion-plan check", "version": version, "rules": list(rules.values())}
    results = [_result(report, finding) for report, finding in found]
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _result(report: Report, finding: Finding) -> Json:
    related = [_location(report, place.line, place.label) for place in finding.places if place.line]
    text = f"{report.kernel + ': ' if report.kernel else ''}{finding.message}. {finding.remedy}"
    base: Json = {"ruleId": finding.rule, "level": finding.severity, "message": {"text": text}}
    return {**base, "locations": [_location(report, finding.line or 1, "")], "relatedLocations": related}


def _location(report: Report, line: int, text: str) -> Json:
    place: Json = {"artifactLocation": {"uri": report.file.as_posix()}, "region": {"startLine": line}}
    return {"physicalLocation": place, **({"message": {"text": text}} if text else {})}
