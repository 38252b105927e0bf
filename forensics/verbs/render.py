"""`forensics render`: the page of a saved case."""

from __future__ import annotations

from pathlib import Path

import click

from forensics.verbs import redact_output
from forensics.verbs.options import name_of, outputs, steady
from forensics.verbs.output_paths import Places, allowed, keep_inputs, own, write_all


@click.command()
@click.argument("case", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@outputs
@click.pass_context
def render(ctx: click.Context, case: Path, out: Path | None, md: Path | None, redact: bool, force: bool) -> None:
    """Write the page again from a saved CASE.json; the same case gives the same bytes."""
    from forensics import output

    known = redact_output.begin(ctx) if redact else None
    document = output.saved_case(case)
    default = frozenset(["page"] if out is None else [])
    found = allowed(Places(out or Path(f"{name_of(case)}.html"), None, md, default), force=force)
    keep_inputs(found, [], [case])
    with output.locked(found.page.absolute().parent), output.edited(case):
        if known is not None:
            document = redact_output.redacted(document, known)
            found = redact_output.renamed(found, known, force=force)
        found = own(found, document["run"].get("identity") or [], force=force)
        write_all(document, found)
    click.echo(steady(str(found.page)))
