"""`forensics explain`: what a detector or cause looks at."""

from __future__ import annotations

import click


@click.command()
@click.argument("topic", required=False, metavar="[ID]")
def explain(topic: str | None) -> None:
    """Print what a detector or cause looks at, how it decides, and when it cannot tell. Without ID: the list."""
    from forensics import reference_pages

    click.echo(reference_pages.page(topic) if topic else reference_pages.index())
