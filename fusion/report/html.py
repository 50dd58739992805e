"""The comparison as one page that works offline: table, bars, stage graph with kernel boxes, and a timeline to zoom into."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files

from jinja2 import Environment

from fusion.compare.rows import Entry
from fusion.report.layout import boxes
from fusion.report.spans import spans

SHOWN = 2500  # spans of a kernel on the page


def _timeline(entry: Entry) -> list[dict[str, object]]:
    return [
        {
            "name": k.name,
            "us": round(k.us, 1),
            "blocks": k.blocks,
            "bottleneck": k.bottleneck,
            "busy": dict(k.busy),
            "waits": dict(k.waits),
            "critical": dict(k.critical_us),
            "spans": [[s.lane, s.name, round(s.start, 1), round(s.end, 1), s.line, s.text[:120]] for s in spans(k, SHOWN)],
        }
        for k in (entry.time.kernels if entry.time else ())
    ]


def page(name: str, entries: Sequence[Entry], reasons: Sequence[str]) -> str:
    """The text of the page. Everything is inside: no script or style is loaded from elsewhere."""
    data = [{**e.to_json(), "timeline": _timeline(e), "graph": boxes(e.program.plan) if e.program else None} for e in entries]
    template = Environment(autoescape=True).from_string((files("fusion.report") / "page.html.j2").read_text(encoding="utf-8"))
    payload = json.dumps(data).replace("</", "<\\/")
    return template.render(name=name, entries=entries, reasons=reasons, data=payload)
