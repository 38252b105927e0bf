"""`forensics guard`: what would have caught it, and that guard as a callback file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from forensics.verbs.options import named_file, notice, run_config_option, run_option, steady

HEAD = ("guard", "metric", "fires at", "steps before the harm", "false alarms", "healthy values")


@click.command()
@click.argument("run")
@click.option("--emit", type=click.Choice(["hf", "lightning", "torch", "python"]), help="Write the best guard as a callback file.")
@click.option("--guard", "guard_name", metavar="GUARD", help="Write this guard instead of the best.")
@click.option(
    "--out", type=click.Path(path_type=Path), callback=named_file, help="The callback file; default guard_<GUARD>.py in this folder."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@run_option
@run_config_option
def guard(emit: str | None, guard_name: str | None, out: Path | None, as_json: bool, force: bool, **where: Any) -> None:
    """Print which live guards would have caught what went wrong in RUN: at which step, how many steps before the harm, and with how
    many false alarms before it.

    The guards know at each step only what was logged until then. With --emit the best one (or --guard) is written as a small callback
    for transformers.Trainer, Lightning, a PyTorch loop or any Python loop.
    """
    import forensics

    if out is not None and emit is None:
        raise click.UsageError("--out is for the file that --emit writes: give --emit hf, lightning, torch or python")
    told = forensics.guard(where["run"], run=where["name"], run_config=where["run_config"])
    chosen = told.row(guard_name).guard if guard_name or emit else ""
    if emit is not None:
        from forensics import output

        path = out or Path(f"guard_{chosen}.py")
        with output.locked(path.parent):
            output.check(path, force=force)
            output.write(path, told.emit(emit, chosen))
        notice(f"guard {chosen}: {path}")
    if as_json:
        from reports.text_format import visible_json

        click.echo(visible_json(json.dumps(told.to_json())))
    elif emit is None:
        _show(told)


def _show(told: Any) -> None:
    click.echo(steady(told.says()))
    rows = [
        HEAD,
        *((r.guard, r.tag, *(_or_dash(x) for x in (r.fired, r.lead)), str(r.false_alarms), str(r.healthy_values)) for r in told.rows),
    ]
    widths = [max(len(steady(row[i])) for row in rows) for i in range(len(HEAD))]
    for row in rows if told.rows else ():
        click.echo("  ".join(steady(cell).ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())


def _or_dash(x: int | None) -> str:
    return "-" if x is None else str(x)
