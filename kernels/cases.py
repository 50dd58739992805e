"""Verification cases that an operator's family wants beside the general ones: (level, name, parameters to change, how to draw inputs)."""

from __future__ import annotations

from collections.abc import Mapping

Changes = Mapping[str, int | float | bool | str | None]
OwnCase = tuple[str, str, Changes, Mapping[str, int | float]]

SINK: Changes = {"batch": 1, "heads": 4, "groups": 2, "seq_len": 192, "dim": 64, "window": None, "dtype": "float16"}

CASES: dict[str, tuple[OwnCase, ...]] = {
    "gqa_sink_bwd": (
        ("L0", "causal", SINK, {}),
        ("L0", "window 96", {**SINK, "window": 96}, {}),
        ("L0", "one query head a K/V head", {**SINK, "groups": 1}, {}),
        ("L0", "8 query heads a K/V head", {**SINK, "heads": 8, "groups": 8, "seq_len": 128}, {}),
        ("L0", "dim 128, two batches", {**SINK, "batch": 2, "heads": 2, "seq_len": 128, "dim": 128}, {}),
        ("L0", "blocks 32 by 64", {**SINK, "block_M": 32, "block_N": 64}, {}),
        ("L0", "blocks 64 by 32", {**SINK, "block_M": 64, "block_N": 32}, {}),
        ("L0", "bfloat16", {**SINK, "dtype": "bfloat16"}, {}),
        ("L1", "tail of 8", {**SINK, "seq_len": 200}, {}),
        ("L1", "prime length 131", {**SINK, "seq_len": 131}, {}),
        ("L1", "prime length 37, less than a block", {**SINK, "seq_len": 37}, {}),
        ("L1", "window 100, no multiple of the block", {**SINK, "window": 100, "seq_len": 193}, {}),
        ("L1", "window 1", {**SINK, "window": 1, "seq_len": 131}, {}),
        ("L1", "values times 0.1", SINK, {"scale": 0.1}),
        ("L1", "values times 2", SINK, {"scale": 2.0}),
        ("L1", "values times 0.5 plus 0.25", SINK, {"scale": 0.5, "shift": 0.25}),
        ("L1", "scale 0.5", {**SINK, "sm_scale": 0.5}, {}),
    ),
}
