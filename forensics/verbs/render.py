"""`forensics render`: the page of a saved case."""

from __future__ import annotations

from pathlib import Path

import click

from forensics.verbs import redaction
from forensics.verbs.shared import name_of, outputs, steady, write_all


@click.command()
@click.argument("case", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@outputs
@click.pass_context
def render(ctx: click.Context, case: Path, out: Path | None, md: Path | None, redact: bool, force: bool) -> None:
    """Write the page again from a saved CASE.json; the same case gives the same bytes."""
    from forensics import output

    known = redaction.begin(ctx) if redact else None
    document = output.saved_case(case)
    page = out or Path(f"{name_of(case)}.html")
    if known is not None:
        with output.edited(case):
            document = redaction.redacted(document, known)
        page = out or redaction.named(page, known)
    for path in (page, md):
        if path is not None:
            output.check(path, force=force, replace_own=out is None)
    with output.edited(case):
        write_all(document, page, None, md)
    click.echo(steady(str(page)))
