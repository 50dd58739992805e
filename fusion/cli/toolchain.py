"""`fusion-plan toolchain`: get, look at, stop and remove the compiler."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from fusion import toolchain as api
from fusion.toolchain.progress import terminal
from fusion.words import count

MEGABYTE = 1_000_000

KINDS = {
    "importable": "importable in this Python",
    "native": "private installation",
    "emulated": "private installation, aarch64 under user-mode emulation",
}


@click.group("toolchain")
def toolchain() -> None:
    """The TileLang-Ascend compiler: found on this machine or installed for it."""


as_json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, nothing else.")


@toolchain.command("status")
@as_json_option
def status(as_json: bool) -> None:
    """Say which compiler is used, where it is, and what is running and cached."""
    state = api.status()
    if as_json:
        click.echo(json.dumps(_status_object(state), indent=1))
        return
    for name, value in _rows(state):
        click.echo(f"{name:<10} {value}")


@toolchain.command("install")
@as_json_option
def install(as_json: bool) -> None:
    """Install the compiler for the current user (no root needed); an interrupted installation is resumed."""
    with terminal() as observer:
        compiler = api.install(observer)
    if as_json:
        click.echo(json.dumps({"compiler": _compiler_object(compiler)}, indent=1))
        return
    click.echo(f"tilelang-ascend {compiler.version} ({KINDS[compiler.kind]}) is ready: {compiler.package}")


@toolchain.command("stop")
@as_json_option
def stop(as_json: bool) -> None:
    """Stop the workers that are kept running between commands."""
    stopped = api.stop()
    click.echo(json.dumps({"stopped": stopped}) if as_json else f"stopped {count(stopped, 'worker')}")


@toolchain.command("remove")
@as_json_option
def remove(as_json: bool) -> None:
    """Remove all that was installed, the workers and the cached results."""
    with terminal() as observer:
        freed = api.remove(observer)
    click.echo(json.dumps({"freed_bytes": freed}) if as_json else f"freed {freed // MEGABYTE} MB")


def _status_object(state: api.Status) -> dict[str, object]:
    """What `status` says, for machines: sizes in bytes; `compiler` is null where there is none, `obstacle` says why there can be none."""
    return {
        "compiler": _compiler_object(state.compiler) if state.compiler else None,
        "obstacle": state.obstacle,
        "root": str(state.root),
        "installed_bytes": state.bytes,
        "unfinished": state.unfinished,
        "workers": [asdict(worker) for worker in state.workers],
        "cached_results": state.cached_results,
    }


def _compiler_object(compiler: api.Compiler) -> dict[str, str]:
    return {"version": compiler.version, "kind": compiler.kind, "package": str(compiler.package)}


def _rows(state: api.Status) -> list[tuple[str, str]]:
    rows = [("compiler", _compiler(state))]
    if state.compiler is not None:
        rows.append(("package", str(state.compiler.package)))
    if state.bytes:
        rows.append(("installed", f"{state.bytes // MEGABYTE} MB in {state.root}"))
    workers = [_worker(worker) for worker in state.workers] or ["not running; started when a kernel is lowered"]
    rows += [("worker", text) for text in workers]
    return [*rows, ("cache", count(state.cached_results, "lowered kernel"))]


def _compiler(state: api.Status) -> str:
    if state.compiler is not None:
        return f"tilelang-ascend {state.compiler.version} ({KINDS[state.compiler.kind]})"
    if state.obstacle:
        return f"none: {state.obstacle}"
    unfinished = " (installation unfinished)" if state.unfinished else ""
    return f"none{unfinished}; run `fusion-plan toolchain install`"


def _worker(worker: api.WorkerState) -> str:
    return f"{worker.state}, process {worker.pid}, up {worker.seconds_up:.0f} s, {count(worker.served, 'kernel')} lowered"
