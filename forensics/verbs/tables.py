"""`forensics tables`: what was read, as Parquet; with `--verify`, whether other readers agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from forensics.errors import ForensicsError
from forensics.verbs.options import metric_option, run_config_option, steady


@click.command()
@click.argument("run")
@click.option("--out", type=click.Path(path_type=Path), help="The folder for the Parquet files.")
@click.option("--verify", is_flag=True, help="Read event and .wandb files again with tbparse and wandb, and compare every value.")
@metric_option
@click.option("--force", is_flag=True, help="Replace existing files.")
@run_config_option
@click.pass_context
def tables(ctx: click.Context, run: str, out: Path | None, verify: bool, metrics: dict[str, str], run_config: bool, force: bool) -> None:
    """Write the tables of RUN as Parquet: metrics, events, config, batches, checkpoints and more.

    Values are as logged: nothing is converted or dropped. Several runs below RUN get a folder each. With --verify the exit
    code is 0 only if both readers agree on every value; it needs no --out, and the packages of
    run-forensics[verify].
    """
    from forensics import at_path, progress

    if out is None and not verify:
        raise click.UsageError("Give --out DIR, --verify, or both.")
    with progress.bar(ctx.obj["quiet"], shown_as=steady) as tick:
        runs = at_path.read_runs(run, run_config=run_config, metrics=metrics, progress=tick)
    if out is not None:
        _write(runs, out, force=force)
    if verify and not _agree(runs, quiet=ctx.obj["quiet"]):
        ctx.exit(1)


def _write(runs: list[Any], out: Path, *, force: bool) -> None:
    import io

    import pyarrow.parquet as pq

    from forensics import output
    from forensics.run import identity

    files = [(out / (r.id if len(runs) > 1 else ".") / f"{name}.parquet", table) for r in runs for name, table in r.tables.items()]
    for path, _ in files:
        output.check(path, force=force)
        if identity.is_input(path, runs):
            raise ForensicsError(f"{path} is part of the run: not overwritten", "Give another folder with --out.")

    def encoded(table: Any) -> bytes:
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="zstd")
        return buffer.getvalue()

    output.write_all((path, encoded(table)) for path, table in files)
    for r in runs:
        rows = ", ".join(f"{t.num_rows} {name}" for name, t in r.tables.items() if t.num_rows)
        click.echo(steady(f"{r.id}: {rows or 'no rows'}"))


def _agree(runs: list[Any], *, quiet: bool) -> bool:
    from forensics import progress, verify
    from forensics.verbs import verify_output

    with progress.bar(quiet, shown_as=steady) as tick:
        comparisons = list(verify.verify(runs, tick))
    verify_output.show(comparisons)
    return all(c.is_same for c in comparisons)
