"""`fusion-plan calibrate FILE...`: fit the device description to measured latencies."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("calibrate")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--device", default="910B3", show_default=True, metavar="NAME|FILE", help="The device to start from.")
@click.option("--map", "mapping", multiple=True, metavar="NAME=LABEL", help="Which kernel a profiled name is; see --labels.")
@click.option("--labels", is_flag=True, help="List the kernels that measured launches can be.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write the calibrated device here (a .toml file for --device)."
)
@click.option("--published", is_flag=True, help="Use the published latencies that come with the package.")
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
    """Fit at most 12 numbers of a device description to measured latencies in FILES.

    FILES: our CSV (label,launches,us), OpBasicInfo.csv, op_summary_*.csv or kernel_details.csv.
    """
    from fusion.calibrate import session
    from fusion.calibrate.measured import MEASURED
    from fusion.device import load, save
    from fusion.errors import FusionError

    if bench_dir:
        from fusion.calibrate.emitted import emit

        written = emit(bench_dir)
        click.echo(f"{len(written) - 2} kernels in {bench_dir}; on a machine with an NPU: python {bench_dir}/run.py > measured.csv")
        return
    if labels:
        click.echo("\n".join(session.labels()))
        return
    paths = [*files, *([MEASURED] if published else [])]
    if not paths:
        raise FusionError("no file", where="calibrate", remedy="give a CSV of measured latencies, or --published for those of the package")
    if out and out.suffix != ".toml":
        raise FusionError(f"--out {out}", where="calibrate", remedy="name a .toml file")
    rows, left = session.rows_of(paths, mapping)
    result = session.calibrated(load(device), rows)
    if out:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(save(result.device, session.NOTE), encoding="utf-8")
    if as_json:
        click.echo(_json(result, left))
    else:
        for line in session.report(result, left):
            click.echo(line)
        click.echo(f"Written: {out}" if out else "Nothing written: --out FILE keeps the device")


def _json(result: object, left: list[str]) -> str:
    import json
    from dataclasses import asdict

    from fusion.calibrate.fit import Calibration

    assert isinstance(result, Calibration)
    shown = {
        "interval": result.interval, "mean_error": result.mean_error, "mean_left_out_error": result.mean_left_out_error,
        "parameters": [asdict(p) for p in result.parameters], "rows": [asdict(r) for r in result.residuals], "uncalibrated": left,
    }  # fmt: skip
    return json.dumps(shown, indent=1)
