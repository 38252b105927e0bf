"""`forensics formats`: what is read."""

from __future__ import annotations

import shutil

import click

from forensics.verbs.every_verb import first_sentence


@click.command()
def formats() -> None:
    """List the formats that are read, each in a sentence. `forensics explain NAME` says more of one."""
    import parsers

    rows = [(parsers.name_of(m), first_sentence(m.__doc__)) for m in parsers.modules()]
    formatter = click.HelpFormatter(width=min(shutil.get_terminal_size((100, 24)).columns, 110))
    formatter.write_dl(rows)
    click.echo(formatter.getvalue().rstrip())
