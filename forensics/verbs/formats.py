"""`forensics formats`: what is read."""

from __future__ import annotations

import shutil

import click


@click.command()
def formats() -> None:
    """List the formats that are read, each in a sentence. `forensics explain NAME` says more of one."""
    import parsers
    from forensics import reference_pages

    rows = [(parsers.name_of(m), reference_pages.first_sentence(m.__doc__)) for m in parsers.modules()]
    formatter = click.HelpFormatter(width=min(shutil.get_terminal_size((100, 24)).columns, 110))
    formatter.write_dl(rows)
    click.echo(formatter.getvalue().rstrip())
