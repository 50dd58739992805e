"""The JSON form of a plan, for machines, the graph included: `from_json(to_json(p)) == p`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import TypedDict

from fusion.errors import FusionError
from fusion.graph import from_text as graph_from_text
from fusion.graph import to_text as graph_to_text
from fusion.plan.rules import PLAN_RULES
from fusion.plan.types import Direction, Handoff, Kernel, Level, Memory, Placement, Plan


class HandoffJson(TypedDict):
    value: str
    name: str
    direction: Direction
    level: Level
    kind: str
    slots: int
    free: bool


class PlacementJson(TypedDict):
    value: str
    memory: Memory


class KernelJson(TypedDict):
    name: str
    stages: list[str]
    grid: list[str]
    loops: list[str]
    persistent: bool
    threads: int
    handoffs: list[HandoffJson]
    placements: list[PlacementJson]


class PlanJson(TypedDict):
    operator: str
    device: str
    graph: str
    tiles: dict[str, int]
    kernels: list[KernelJson]
    host_stages: list[str]
    notes: list[str]


def to_object(plan: Plan) -> dict[str, object]:
    """The plan as plain JSON values; `graph` is the text form of the operator's graph."""
    return {
        "operator": plan.graph.name,
        "device": plan.device,
        "graph": graph_to_text(plan.graph),
        "tiles": dict(plan.tiles),
        "kernels": [asdict(k) for k in plan.kernels],
        "host_stages": list(plan.host_stages),
        "notes": list(plan.notes),
    }


def to_json(plan: Plan) -> str:
    return json.dumps(to_object(plan), indent=1)


def from_json(text: str, source: str = "plan JSON") -> Plan:
    """Reads what to_json wrote, and checks the rules of plans. Raises FusionError for text that is no such JSON or breaks one."""
    try:
        plan = _plan(json.loads(text))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise FusionError(f"not a plan in JSON: {type(error).__name__} {error}", where=source) from error
    for rule in PLAN_RULES:
        for where, why in rule(plan):
            raise FusionError(f"{where}: {why} (rule {rule.__name__.replace('_', '-')})", where=source)
    return plan


def _plan(content: PlanJson) -> Plan:
    return Plan(
        graph_from_text(content["graph"]),
        tuple(content["tiles"].items()),
        tuple(map(_kernel, content["kernels"])),
        _names(content["host_stages"]),
        content["device"],
        _names(content["notes"]),
    )


def _kernel(content: KernelJson) -> Kernel:
    return Kernel(
        content["name"],
        _names(content["stages"]),
        _names(content["grid"]),
        _names(content["loops"]),
        bool(content["persistent"]),
        int(content["threads"]),
        tuple(map(_handoff, content["handoffs"])),
        tuple(Placement(p["value"], p["memory"]) for p in content["placements"]),
    )


def _handoff(h: HandoffJson) -> Handoff:
    kind = "relay" if h["kind"] == "relay" else "workspace"
    return Handoff(h["value"], h["name"], h["direction"], h["level"], kind, int(h["slots"]), bool(h["free"]))


def _names(items: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(i) for i in items)
