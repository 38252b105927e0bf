"""`forensics schema`: what programs may rely on in the JSON that other commands write."""

from __future__ import annotations

from importlib import resources

import click

KINDS = ("case", "audit", "checkpoint")


@click.command()
@click.argument("kind", type=click.Choice(KINDS), default="case", metavar="[case|audit|checkpoint]")
def schema(kind: str) -> None:
    """Print the JSON Schema of case.json, audit.json, or `forensics checkpoint --json`.

    JSON Schema 2020-12. Keys may be added within one version of the schema, so it allows more than it lists.
    """
    click.echo(resources.files("forensics").joinpath("schemas", f"{kind}.json").read_text("utf-8").rstrip())
