"""`forensics checkpoint`: what is in one, and what changed to another."""

from __future__ import annotations

import json
import shutil

import click

from forensics.verbs.options import steady


@click.command()
@click.argument("path")
@click.argument("path2", required=False)
@click.option("--json", "as_json", is_flag=True, help="Everything as JSON on standard output.")
@click.pass_context
def checkpoint(ctx: click.Context, path: str, path2: str | None, as_json: bool) -> None:
    """Print what is in the checkpoint PATH, what is broken, and what changed from PATH to PATH2.

    Reads safetensors, torch, torch.distributed, numpy and Keras files and folders of them, here or behind an fsspec URL (s3://...).
    Runs nothing that they contain.
    """
    from forensics import progress
    from forensics.checkpoints import sick_document
    from reports import checkpoint_text as page
    from reports import text_format

    with progress.bar(ctx.obj["quiet"], shown_as=steady) as tick:
        document = sick_document.report(path, path2, progress=tick)
    if as_json:
        click.echo(text_format.visible_json(json.dumps(document, allow_nan=False)))
    else:
        click.echo(page.render(document, width=max(shutil.get_terminal_size((110, 24)).columns, 80)))
