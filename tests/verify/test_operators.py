"""Every operator with odd parameters, from the planner to the simulator: right numbers and no finding, or refused by a named rule."""

from __future__ import annotations

import shutil

import pytest
import torch

import kernels
from fusion.errors import FusionError
from fusion.graph import StageGraph
from fusion.passes import parse_pipeline, run_pipeline
from fusion.plan.planner import Planner
from fusion.toolchain import find
from fusion.verify import data as verify_data
from tests.inputs import random_inputs

needs_tools = pytest.mark.skipif(find() is None or shutil.which("g++") is None, reason="needs the compiler and g++")

Parameters = dict[str, int | bool | str]
BF16 = "bfloat16"
CASES: list[tuple[str, Parameters]] = [
    ("gemm", {"M": 37, "N": 131, "K": 200}),
    ("gemm", {"M": 1, "N": 200, "K": 40, "dtype": BF16}),
    ("gemm_bias_relu", {"M": 200, "N": 37, "K": 300}),
    ("mlp", {"tokens": 37, "dim": 40, "hidden": 200, "dtype": BF16}),
    ("rms_norm", {"tokens": 37, "dim": 131}),
    ("rms_norm", {"tokens": 3, "dim": 4096, "dtype": BF16}),
    ("rms_norm", {"tokens": 1, "dim": 5}),
    ("layer_norm", {"tokens": 9, "dim": 1030}),
    ("attention_fwd", {"batch": 2, "heads": 2, "groups": 2, "seq_len": 131, "dim": 40, "dtype": BF16}),
    ("attention_fwd", {"batch": 1, "heads": 2, "seq_len": 200, "dim": 80, "window": 70}),
    ("attention_fwd", {"batch": 1, "heads": 1, "seq_len": 37, "dim": 128, "causal": False}),
    ("attention_fwd", {"batch": 1, "heads": 2, "seq_len": 200, "kv_len": 331, "dim": 192}),
    ("attention_fwd", {"batch": 1, "heads": 8, "groups": 8, "seq_len": 130, "dim": 64, "block_M": 32, "block_N": 32}),
    ("attention_fwd", {"batch": 1, "heads": 1, "seq_len": 256, "dim": 64, "block_M": 128, "block_N": 128}),
    ("attention_fwd", {"batch": 1, "heads": 1, "seq_len": 1, "kv_len": 131, "dim": 64}),
    ("mha_bwd", {"batch": 1, "heads": 2, "seq_len": 200, "dim": 80, "dim_v": 64, "window": 70}),
    ("mha_bwd", {"batch": 1, "heads": 2, "groups": 2, "seq_len": 131, "dim": 40, "dtype": BF16}),
    ("gdn_chunk_h", {"seq_len": 128, "heads": 2, "dim_k": 64, "dim_v": 40, "dtype": "float16", "initial_state": True}),
    ("gdn_chunk_o", {"seq_len": 64, "heads": 1, "dim_k": 64, "dim_v": 40, "chunk_size": 32, "dtype": "float16"}),
    ("gdn_kkt", {"seq_len": 128, "heads": 2}),
    ("gdn_wy_fast", {"batch": 2, "seq_len": 128, "heads": 2, "dim_k": 40, "dim_v": 24, "chunk_size": 32, "dtype": "float16"}),
    ("mla_decode", {"batch": 2, "heads": 32, "kv_ctx": 260, "dim": 512, "pe_dim": 64, "num_split": 2}),
    ("sparse_mla_fwd", {"seq_len": 5, "kv_len": 150, "heads": 40, "dim": 512, "tail_dim": 64, "topk": 70}),
    ("gqa_decode_paged", {"batch": 3, "heads": 8, "groups": 4, "pages": 3, "pool": 9, "page_size": 64, "dim": 40}),
    ("quantize_tokens", {"tokens": 37, "dim": 131}),
    ("w8a8_gemm", {"M": 37, "N": 131, "K": 200}),
    ("cross_entropy", {"tokens": 9, "vocab": 2500, "dtype": BF16}),
    ("moe_gate", {"tokens": 37, "experts": 60, "topk": 6, "scale": 2.5, "dtype": BF16}),
    ("indexer_topk", {"seq_len": 150, "heads": 20, "dim": 64, "topk": 70}),
    ("rope", {"batch": 1, "heads": 3, "seq_len": 70, "dim": 80}),
    ("ssd_chunk_state", {"seq_len": 192, "heads": 2, "dim": 40, "state_dim": 70}),
    ("gqa_sink_bwd", {"batch": 1, "heads": 8, "groups": 8, "seq_len": 130, "dim": 64, "block_M": 32, "block_N": 32}),
]
SCALES = {"W": 0.1, "W1": 0.05, "W2": 0.05}  # products of weights that stay near 1


def inputs_for(graph: StageGraph) -> dict[str, torch.Tensor]:
    """Normal numbers; log decays fall, a log-sum-exp fits its scores, weights are small."""
    drawn = verify_data.random_inputs(graph, verify_data.Draw())  # integers: the indices of rows, some outside
    found = {n: t for n, t in drawn.items() if not t.is_floating_point()}
    found |= {n: t * SCALES.get(n, 1.0) for n, t in random_inputs(graph).items()}
    if graph.name.startswith("gdn"):
        found["K"] *= 0.1
        found["G"] = -0.05 * found["G"].abs().cumsum(1)
    if "last" in found:
        found["A"] = -0.05 * found["A"].abs().cumsum(-1)
        found["last"] = found["A"][..., -1]
    if "label" in found:
        found["label"] = found["label"] * 300 - 1
    if "length" in found:
        found["length"] = torch.tensor([192, 70, 0], dtype=torch.int32)
    if "lse" in found:
        found["lse"] = 5 + 0.1 * found["lse"]
    return found


def label(case: tuple[str, Parameters]) -> str:
    return "-".join([case[0], *(f"{k}{v}" for k, v in case[1].items())])


@needs_tools
@pytest.mark.parametrize("case", CASES, ids=map(label, CASES))
def test_fewest_and_most_kernels_are_clean(case: tuple[str, Parameters]) -> None:
    from fusion.verify.run import verify_plan

    graph = kernels.load(case[0])(**case[1])
    planner = Planner(graph)
    found = {n: plans[0].plan for n, plans in planner.possible(tuple(range(1, len(planner.atoms) + 1)), 1).items() if plans}
    assert found, planner.impossible(1)
    for count in sorted({min(found), max(found)}):
        verdict = verify_plan(run_pipeline(found[count], parse_pipeline("default")).artefact, inputs_for(graph))
        assert verdict.errors == (), f"{count} kernels: {verdict.errors[0]}"
        assert verdict.verdict == "clean", f"{count} kernels: {verdict.outputs}"


REFUSED: list[tuple[str, Parameters, str, str]] = [
    ("rms_norm", {"dim": 16384}, "memory-fits", "327744 B of UB, which has 196352 B"),
    ("moe_gate", {"experts": 16384}, "memory-fits", "of UB, which has 196352 B"),
    ("mla_decode", {"dim": 1040}, "grid-sum-is-final", "score of stage qk is summed across blocks over d"),
]


@pytest.mark.parametrize(("name", "parameters", "rule", "numbers"), REFUSED, ids=[r[0] for r in REFUSED])
def test_what_cannot_be_emitted_is_refused_by_name(name: str, parameters: Parameters, rule: str, numbers: str) -> None:
    with pytest.raises(FusionError) as refused:
        Planner(kernels.load(name)(**parameters)).plan(1)
    assert f"(rule {rule})" in str(refused.value)
    assert numbers in str(refused.value)
