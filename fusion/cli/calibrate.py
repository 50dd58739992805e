"""`fusion-plan calibrate FILE...`: fit the device description to measured latencies."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command("calibrate")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--device", default="910B3", show_default=True, metavar="NAME|FILE", help="The device to start from: a known one, or a .toml file."
)
@click.option("--map", "mapping", multiple=True, metavar="NAME=LABEL", help="Which kernel a profiled name is; see --labels.")
@click.option("--labels", is_flag=True, help="List the kernels that measured launches can be.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write the calibrated device here (a .toml file for --device)."
)
@click.option("--published", is_flag=True, help="Use the published latencies that come with the package; with FILES in addition to them.")
@click.option(
    "--emit-microbenchmarks", "bench_dir", type=click.Path(path_type=Path), metavar="DIR", help="Write kernels to time on an NPU."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output, nothing else.")
def calibrate(
    files: tuple[Path, ...],
    device: str,
    mapping: tuple[str, ...],
    labels: bool,
    out: Path | None,
    published: bool,
    bench_dir: Path | None,
    as_json: bool,
) -> None:
    """Fit those of eleven numbers of a device description that the measured latencies in FILES determine.

    FILES: our CSV (label,launches,us), OpBasicInfo.csv, op_summary_*.csv or kernel_details.csv.
    """
    from fusion.calibrate import session
    from fusion.calibrate.measured import MEASURED
    from fusion.cli.contradictions import exclusive
    from fusion.device import load, save
    from fusion.errors import FusionError
    from fusion.words import count

    others = ("FILES", "--published", "--map", "--out")
    exclusive("--labels", "--emit-microbenchmarks", *others, why="the labels are listed, and nothing is fitted")
    exclusive("--emit-microbenchmarks", *others, why="the kernels are written, and nothing is fitted")
    if bench_dir:
        from fusion.calibrate.emitted import emit

        written = emit(bench_dir)
        said = f"{count(len(written) - 2, 'kernel')} in {bench_dir}; on a machine with an NPU: python {bench_dir}/run.py > measured.csv"
        click.echo(json.dumps({"written": [str(path) for path in written]}, indent=1) if as_json else said)
        return
    if labels:
        click.echo(json.dumps({"labels": session.labels()}, indent=1) if as_json else "\n".join(session.labels()))
        return
    paths = [*files, *([MEASURED] if published else [])]
    if not paths:
        raise FusionError("no file", where="calibrate", remedy="give a CSV of measured latencies, or --published for those of the package")
    if out and out.suffix != ".toml":
        raise FusionError(f"--out {out}", where="calibrate", remedy="name a .toml file")
    rows, left = session.rows_of(paths, mapping)
    result = session.calibrated(load(device), rows, _told)
    doubt = session.warning(load(device), result, rows)
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(save(result.device, session.NOTE), encoding="utf-8")
    if as_json:
        click.echo(_json(result, left))
    else:
        for line in session.report(result, left):
            click.echo(line)
        if doubt:
            click.echo(doubt)
        click.echo(f"Written: {out}" if out else "Nothing written: --out FILE keeps the device")


def _told(what: str, done: int, total: int) -> None:
    click.echo(f"[{done + 1}/{total}] {what}", err=True)


def _json(result: object, left: list[str]) -> str:
    from dataclasses import asdict

    from fusion.calibrate.fit import Calibration

    assert isinstance(result, Calibration)
    shown = {
        "interval": result.interval, "mean_error": result.mean_error, "mean_left_out_error": result.mean_left_out_error,
        "parameters": [asdict(p) for p in result.parameters], "rows": [asdict(r) for r in result.residuals], "uncalibrated": left,
    }  # fmt: skip
    return json.dumps(shown, indent=1)
