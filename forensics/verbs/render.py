"""`forensics render`: the page of a saved case."""

from __future__ import annotations

from pathlib import Path

import click

from forensics.verbs import redact_output
from forensics.verbs.options import Wanted, browse, collected, name_of, open_option, outputs, steady
from forensics.verbs.output_paths import Places, allowed, keep_inputs, own, renamed, write_all


@click.command()
@click.argument("case", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@outputs
@open_option
@collected(wanted=Wanted)
@click.pass_context
def render(ctx: click.Context, case: Path, wanted: Wanted, open_page: bool) -> None:
    """Write the page again from a saved CASE.json; the same case gives the same bytes."""
    from forensics import output, redact

    known = redact_output.begin(ctx) if wanted.redact else None
    document = output.saved_case(case)
    default = frozenset(["page"] if wanted.out is None else [])
    found = allowed(Places(wanted.out or Path(f"{name_of(case)}.html"), None, wanted.md, default), force=wanted.force)
    keep_inputs(found, [], [case])
    with output.locked(found.page.absolute().parent), output.edited(case):
        if known is not None:
            document = redact.redacted(document, known)
            found = renamed(found, known, force=wanted.force)
        found = own(found, document["run"].get("identity") or [], force=wanted.force)
        write_all(document, found)
    click.echo(steady(str(found.page)))
    if open_page:
        browse(found.page)
