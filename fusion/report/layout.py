"""Where the stages and kernels of a plan are drawn: a column a kernel, stages below each other, the host last."""

from __future__ import annotations

from fusion.plan.types import Plan

WIDTH, HEIGHT, GAP, TOP = 130, 30, 44, 36


def boxes(plan: Plan) -> dict[str, object]:
    """Rectangles of kernels and stages, and lines between stages, in pixels."""
    columns = [(k.name, k.stages) for k in plan.kernels] + ([("host", plan.host_stages)] if plan.host_stages else [])
    kernels, stages, at = list[dict[str, object]](), list[dict[str, object]](), dict[str, tuple[int, int]]()
    for i, (name, members) in enumerate(columns):
        x = 10 + i * (WIDTH + GAP)
        kernels.append({"name": name, "x": x - 8, "y": 8, "w": WIDTH + 16, "h": TOP + len(members) * (HEIGHT + 12)})
        for j, stage in enumerate(members):
            at[stage] = (x, TOP + j * (HEIGHT + 12))
            unit = plan.graph.stage(stage).unit if name != "host" else "host"
            stages.append({"name": stage, "unit": unit, "x": x, "y": at[stage][1], "w": WIDTH, "h": HEIGHT})
    lines = [[*at[u], *at[v]] for u, v in plan.graph.graph.edges if u in at and v in at]
    tallest = max((len(m) for _, m in columns), default=0)
    return {
        "kernels": kernels,
        "stages": stages,
        "lines": lines,
        "width": 20 + len(columns) * (WIDTH + GAP),
        "height": TOP + 30 + tallest * (HEIGHT + 12),
        "box": [WIDTH, HEIGHT],
    }
