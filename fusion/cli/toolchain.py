"""`fusion-plan toolchain`: get, look at, stop and remove the compiler."""

from __future__ import annotations

import click

from fusion import toolchain as api
from fusion.toolchain.progress import terminal

MEGABYTE = 1_000_000

KINDS = {
    "importable": "importable in this Python",
    "native": "private installation",
    "emulated": "private installation, aarch64 under user-mode emulation",
}


@click.group("toolchain")
def toolchain() -> None:
    """The TileLang-Ascend compiler: found on this machine or installed for it."""


@toolchain.command("status")
def status() -> None:
    """Say which compiler is used, where it is, and what is running and cached."""
    for name, value in _rows(api.status()):
        click.echo(f"{name:<10} {value}")


@toolchain.command("install")
def install() -> None:
    """Install the compiler for the current user (no root needed); an interrupted installation is resumed."""
    with terminal() as observer:
        compiler = api.install(observer)
    click.echo(f"tilelang-ascend {compiler.version} ({KINDS[compiler.kind]}) is ready: {compiler.package}")


@toolchain.command("stop")
def stop() -> None:
    """Stop the workers that are kept running between commands."""
    click.echo(f"stopped {_count(api.stop(), 'worker')}")


@toolchain.command("remove")
def remove() -> None:
    """Remove all that was installed, the workers and the cached results."""
    with terminal() as observer:
        freed = api.remove(observer)
    click.echo(f"freed {freed // MEGABYTE} MB")


def _rows(state: api.Status) -> list[tuple[str, str]]:
    rows = [("compiler", _compiler(state))]
    if state.compiler is not None:
        rows.append(("package", str(state.compiler.package)))
    if state.bytes:
        rows.append(("installed", f"{state.bytes // MEGABYTE} MB in {state.root}"))
    workers = [_worker(worker) for worker in state.workers] or ["not running; started when a kernel is lowered"]
    rows += [("worker", text) for text in workers]
    return [*rows, ("cache", _count(state.cached_results, "lowered kernel"))]


def _compiler(state: api.Status) -> str:
    if state.compiler is not None:
        return f"tilelang-ascend {state.compiler.version} ({KINDS[state.compiler.kind]})"
    if state.obstacle:
        return f"none: {state.obstacle}"
    unfinished = " (installation unfinished)" if state.unfinished else ""
    return f"none{unfinished}; run `fusion-plan toolchain install`"


def _worker(worker: api.WorkerState) -> str:
    return f"{worker.state}, process {worker.pid}, up {worker.seconds_up:.0f} s, {_count(worker.served, 'kernel')} lowered"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
