"""`forensics render`: the page of a saved case."""

from __future__ import annotations

from pathlib import Path

import click

from forensics.verbs import redaction
from forensics.verbs.places import Places, allowed, keep_inputs, own, write_all
from forensics.verbs.shared import name_of, outputs, steady


@click.command()
@click.argument("case", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@outputs
@click.pass_context
def render(ctx: click.Context, case: Path, out: Path | None, md: Path | None, redact: bool, force: bool) -> None:
    """Write the page again from a saved CASE.json; the same case gives the same bytes."""
    from forensics import output

    known = redaction.begin(ctx) if redact else None
    document = output.saved_case(case)
    default = frozenset(["page"] if out is None else [])
    found = allowed(Places(out or Path(f"{name_of(case)}.html"), None, md, default), force=force)
    keep_inputs(found, [], [case])
    with output.locked(found.page.absolute().parent), output.edited(case):
        if known is not None:
            document = redaction.redacted(document, known)
            found = redaction.renamed(found, known, force=force)
        found = own(found, document["run"].get("identity") or [], force=force)
        write_all(document, found)
    click.echo(steady(str(found.page)))
