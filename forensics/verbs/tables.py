"""`forensics tables`: what was read, as Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from forensics.errors import ForensicsError
from forensics.verbs.options import metric_option, run_config_option, steady, without_pandas


@click.command()
@click.argument("run")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder for the Parquet files.")
@metric_option
@click.option("--force", is_flag=True, help="Replace existing files.")
@run_config_option
@click.pass_context
def tables(ctx: click.Context, run: str, out: Path, metrics: dict[str, str], run_config: bool, force: bool) -> None:
    """Write the tables of RUN as Parquet: metrics, events, config, batches, checkpoints and more.

    Values are as logged: nothing is converted or dropped. Several runs below RUN go to a folder each.
    """
    import io

    import pyarrow.parquet as pq

    from forensics import output, pipeline, progress
    from forensics.run import identity

    without_pandas()
    with progress.bar(ctx.obj["quiet"], shown_as=steady) as tick:
        runs = pipeline.read_runs(run, run_config=run_config, metrics=metrics, progress=tick)
    files = [(out / (r.id if len(runs) > 1 else ".") / f"{name}.parquet", table) for r in runs for name, table in r.tables.items()]
    for path, _ in files:
        output.check(path, force=force)
        if identity.is_input(path, runs):
            raise ForensicsError(f"{path} is what was read: left as it is", "Give another folder with --out.")

    def encoded(table: Any) -> bytes:
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="zstd")
        return buffer.getvalue()

    output.write_all((path, encoded(table)) for path, table in files)
    for r in runs:
        rows = ", ".join(f"{t.num_rows} {name}" for name, t in r.tables.items() if t.num_rows)
        click.echo(steady(f"{r.id}: {rows or 'no rows'}"))
