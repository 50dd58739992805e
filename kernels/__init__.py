"""Operators: one family a file. Importing this package imports none of them, so that a listing is quick."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusion.graph import Operator

OPERATORS: dict[str, str] = {
    "attention_fwd": "kernels.attention:attention_fwd",
    "cross_entropy": "kernels.loss:cross_entropy",
    "gdn_chunk_h": "kernels.gated_delta:gdn_chunk_h",
    "gdn_chunk_o": "kernels.gated_delta:gdn_chunk_o",
    "gdn_kkt": "kernels.gated_delta:gdn_kkt",
    "gdn_wy_fast": "kernels.gated_delta:gdn_wy_fast",
    "gemm": "kernels.linear:gemm",
    "gemm_bias_relu": "kernels.linear:gemm_bias_relu",
    "gqa_decode_paged": "kernels.paged:gqa_decode_paged",
    "gqa_sink_bwd": "kernels.attention_sink:gqa_sink_bwd",
    "indexer_topk": "kernels.indexer:indexer_topk",
    "layer_norm": "kernels.norm:layer_norm",
    "mha_bwd": "kernels.attention:mha_bwd",
    "mla_decode": "kernels.mla:mla_decode",
    "mlp": "kernels.linear:mlp",
    "moe_gate": "kernels.moe:moe_gate",
    "quantize_tokens": "kernels.quantized:quantize_tokens",
    "rms_norm": "kernels.norm:rms_norm",
    "rope": "kernels.rope:rope",
    "sparse_mla_fwd": "kernels.sparse_mla:sparse_mla_fwd",
    "ssd_chunk_state": "kernels.state_space:ssd_chunk_state",
    "w8a8_gemm": "kernels.quantized:w8a8_gemm",
}
"""Where each operator is: `module:function`."""


def names() -> tuple[str, ...]:
    """The operators that come with the toolkit, sorted."""
    return tuple(sorted(OPERATORS))


def load(name: str) -> Operator[...]:
    """The operator called `name`, or the one in the file that `name` is: `path/to/op.py` or `path/to/op.py:function`."""
    from importlib import import_module

    from fusion.errors import FusionError, did_you_mean
    from fusion.graph import Operator

    if name.split(":")[0].endswith(".py") or name.rpartition(":")[0].endswith(".py"):
        return load_from_file(name)
    if name not in OPERATORS:
        raise FusionError(f"no operator {name!r}", remedy=did_you_mean(name, OPERATORS))
    module, function = OPERATORS[name].split(":")
    found = getattr(import_module(module), function)
    assert isinstance(found, Operator)
    return found


def load_from_file(spec: str) -> Operator[...]:
    """The operator of a user's file, `path/to/op.py` or, where it holds several, `path/to/op.py:function`."""
    from kernels.userfile import operator_in

    return operator_in(spec)
