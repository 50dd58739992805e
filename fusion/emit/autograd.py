"""A torch.autograd.Function around forward and backward, where the second phase turns gradients of outputs into gradients of inputs."""

from __future__ import annotations

from fusion.emit.hostprogram import HostProgram
from fusion.graph import StageGraph


def autograd_class(graph: StageGraph, host: HostProgram) -> list[str]:
    """The class's lines; none where the operator has another form."""
    gradients = _gradients(graph, host)
    if not gradients:
        return []
    forward, backward = host.phases
    inputs, outputs = list(forward.inputs), [r.value for r in forward.results]
    arriving = {graph.value(i.value).after[0]: i.tensor for i in host.inputs if i.after}
    plain = [o for o in outputs if o not in arriving]
    lines = [f"class {class_name(graph.name)}(torch.autograd.Function):"]
    lines += [f'    """{", ".join(outputs)} with gradients for {", ".join(i for i in inputs if i in gradients)}."""', ""]
    lines += ["    @staticmethod", f"    def forward(ctx, {', '.join(inputs)}):"]
    lines += [f"        results, saved = forward({', '.join(inputs)})", "        ctx.save_for_backward(*saved)"]
    if plain:
        picked = [f"results[{outputs.index(o)}]" if len(outputs) > 1 else "results" for o in plain]
        lines.append(f"        ctx.mark_non_differentiable({', '.join(picked)})")
    lines += ["        return results", "", "    @staticmethod"]
    taken = [arriving.get(o, f"_{o}") for o in outputs]
    lines.append(f"    def backward(ctx, {', '.join(taken)}):")
    made = [r.value for r in backward.results]
    lines.append(f"        {', '.join(made)} = backward(ctx.saved_tensors, {', '.join(backward.inputs)})")
    return [*lines, f"        return {', '.join(gradients.get(i, 'None') for i in inputs)}"]


def class_name(operator: str) -> str:
    """`gqa_sink_bwd` -> `GqaSink`: the operator with its gradient."""
    return "".join(part.capitalize() for part in operator.removesuffix("_bwd").split("_"))


def _gradients(graph: StageGraph, host: HostProgram) -> dict[str, str]:
    """Inputs and the outputs that are their gradients (`Q`: `dQ`); empty unless the second phase makes nothing else from gradients only."""
    if len(host.phases) != 2:
        return {}
    forward, backward = host.phases
    outputs = {r.value: r for r in forward.results}
    for i in (x for x in host.inputs if x.tensor in backward.inputs):
        if len(i.after) != 1 or i.value.lower() != f"d{i.after[0].lower()}" or outputs[i.after[0]].shape != i.shape:
            return {}
    by_name = {f"d{i.value.lower()}": i for i in host.inputs if i.tensor in forward.inputs}
    if any(r.value.lower() not in by_name or by_name[r.value.lower()].shape != r.shape for r in backward.results):
        return {}
    del graph
    return {by_name[r.value.lower()].tensor: r.value for r in backward.results}
