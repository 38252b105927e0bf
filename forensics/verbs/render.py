"""`forensics render`: the page of a saved case."""

from __future__ import annotations

from pathlib import Path

import click

from forensics.verbs import redact_output
from forensics.verbs.options import Wanted, browse, collected, format_option, name_of, open_option, outputs, steady
from forensics.verbs.output_paths import STDOUT, Places, allowed, keep_inputs, own, renamed, tell, write_all


@click.command()
@click.argument("case", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@outputs
@format_option
@open_option
@collected(wanted=Wanted)
@click.pass_context
def render(ctx: click.Context, case: Path, wanted: Wanted, open_page: bool) -> None:
    """Write the page again from a saved CASE.json, or another format of it; the same case gives the same bytes."""
    if wanted.format and open_page:
        raise click.UsageError("--open is for the page, which --format leaves out: give one of them")
    from forensics import output, redact

    known = redact_output.begin(ctx) if wanted.redact else None
    document = output.saved_case(case)
    default = frozenset(["page"] if wanted.out is None and wanted.format is None else [])
    page = wanted.out or (STDOUT if wanted.format else Path(f"{name_of(case)}.html"))
    found = allowed(Places(page, None, wanted.md, default, wanted.format), force=wanted.force)
    keep_inputs(found, [], [case])
    with output.locked(found.page.absolute().parent), output.edited(case):
        if known is not None:
            document = redact.redacted(document, known)
            found = renamed(found, known, force=wanted.force)
        found = own(found, document["run"].get("identity") or [], force=wanted.force)
        write_all(document, found)
    if found.page == STDOUT:
        tell(document, found)
    else:
        click.echo(steady(str(found.page)))
    if open_page:
        browse(found.page)
