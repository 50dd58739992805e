"""The JSON form of a stage graph, for machines: `from_json(to_json(g)) == g`."""

from __future__ import annotations

import json
from dataclasses import asdict

from fusion.errors import FusionError
from fusion.graph.stagegraph import StageGraph
from fusion.graph.text import from_text, to_text


def to_json(graph: StageGraph) -> str:
    """One object: `graph` (name), `text` (the exact text form) and the same content as `dims`, `values` and `stages`."""
    content = {
        "graph": graph.name,
        "text": to_text(graph),
        "dims": [asdict(d) for d in graph.dims],
        "values": [asdict(v) for v in graph.values],
        "stages": [asdict(s) for s in graph.stages],
        "carries": [asdict(c) for c in graph.carries],
    }
    return json.dumps(content, indent=1)


def from_json(text: str, source: str = "graph JSON") -> StageGraph:
    """Reads what to_json wrote. Raises FusionError for text that is not JSON or lacks the graph."""
    try:
        content = json.loads(text)
        return from_text(str(content["text"]), source)
    except (ValueError, KeyError, TypeError) as error:
        raise FusionError(f"not a stage graph in JSON: {error}", where=source) from error
