# pyright: basic, reportMissingImports=false
"""One lowering, in a process of its own: read a job, write a result; a crash leaves the name of the step it happened in."""

from __future__ import annotations

import json
import os
import time
import traceback
from pathlib import Path

from tilelang.engine.lower import lower
from tilelang.utils import target
from tvm.ir.transform import PassContext

from . import describe, errors, frontend, pipeline

target.check_npu_availability = lambda: True
"""Lower as on a machine with an NPU: without one, AscendStorageRewrite lets buffers of different dtypes share a place, and the code that
it then makes does not type-check."""

STEP, RESULT, OUTPUT = "step", "result.json", "output.txt"
"""Files in a job's folder: the step entered last, the result, and all that the compiler printed."""


def _tuples(args):
    """JSON has no tuples; a kernel factory's shapes are tuples."""
    if isinstance(args, list):
        return tuple(_tuples(item) for item in args)
    return {key: _tuples(value) for key, value in args.items()} if isinstance(args, dict) else args


def _context(built: frontend.Built, job: dict) -> PassContext:
    configs = job["pass_configs"] if job["pass_configs"] is not None else built.pass_configs()
    return PassContext(opt_level=3, config=configs)


def _unused(trace: pipeline.Trace) -> list[str]:
    return [f"pass {hook.name} never ran: no compiler pass is called {hook.anchor!r}" for hook in trace.hooks if not hook.used]


def _result(built: frontend.Built, artifact, trace: pipeline.Trace) -> dict:
    after = artifact.device_mod.functions_items()[0][1]
    blocks, threads = describe.grid(after)
    entry = str(after.attrs["global_symbol"])
    params = describe.params(built.func, after, built.options)
    return {
        "source": artifact.kernel_source,
        "tir": artifact.device_mod.script(),
        "entry": entry,
        "params": params + describe.open_sizes(artifact.kernel_source, entry, params),
        "blocks": blocks,
        "threads": threads,
        "task_type": describe.task_type(artifact.kernel_source),
        "on_chip": describe.on_chip(after),
        "findings": trace.findings,
        "dumps": trace.dumps,
        "error": None,
    }


def _compile(job: dict, folder: Path, enter) -> dict:
    enter("frontend")
    path = folder / "kernel.py"
    path.write_text(job["source"], encoding="utf-8")
    built = frontend.build(path, job["name"], job["entry"], {key: _tuples(value) for key, value in job["args"].items()})
    enter("setup")
    hooks = [pipeline.load_hook(folder, index, spec) for index, spec in enumerate(job["tir_passes"])]
    trace = pipeline.Trace(enter, hooks, frozenset(job["print_after"]))
    pipeline.attach(trace)
    with _context(built, job):
        artifact = lower(built.func, target=job["target"], platform=job["platform"])
    unused = _unused(trace)
    if unused:
        raise ValueError("; ".join(unused))
    return _result(built, artifact, trace)


def run(job: dict, folder: Path) -> None:
    """Lower one job, or inspect a user's file; whatever it raises becomes an error result with the step it was raised in."""
    if "inspect" in job:
        from .inspector import inspection

        inspection.run(job["inspect"], folder)
        return
    steps = [""]

    def enter(name: str) -> None:
        steps.append(name)
        (folder / STEP).write_text(name, encoding="utf-8")

    start = time.monotonic()
    result: dict
    try:
        result = _compile(job, folder, enter)
    except (Exception, SystemExit) as error:
        result = {"error": errors.from_exception(error, steps[-1], traceback.format_exc())}
    result["seconds"] = time.monotonic() - start
    partial = folder / (RESULT + ".partial")
    partial.write_text(json.dumps(result), encoding="utf-8")
    os.replace(partial, folder / RESULT)
