"""`forensics note`: the author's word in a case."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from forensics.verbs.options import name_of, named_file, show
from forensics.verbs.output_paths import Places, allowed, keep_inputs, own, write_all


@click.command()
@click.argument("case", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--add", "remarks", multiple=True, metavar="TEXT", help="A remark, shown under the answer.")
@click.option("--rule-out", "ruled_out", multiple=True, metavar="CAUSE", help="The id of a cause to rule out.")
@click.option("--because", "reasons", multiple=True, metavar="TEXT", help="Why; one for each --rule-out.")
@click.option("--reinstate", "reinstated", multiple=True, metavar="CAUSE", help="Weigh a ruled-out cause again.")
@click.option(
    "--out", type=click.Path(path_type=Path), callback=named_file, help="Write another report and case; CASE.json stays as it is."
)
@click.option("--force", is_flag=True, help="Replace existing outputs.")
def note(
    case: Path,
    remarks: tuple[str, ...],
    ruled_out: tuple[str, ...],
    reasons: tuple[str, ...],
    reinstated: tuple[str, ...],
    out: Path | None,
    force: bool,
) -> None:
    """Add your notes to the case and write its page again.

    A cause that you rule out stays visible, struck through, with your reason; the others are ranked again. Without --out,
    the case is updated in place and the report beside it is replaced.
    """
    from forensics import output, redact
    from forensics.case_parts import notes

    if len(ruled_out) != len(reasons):
        raise click.UsageError("each --rule-out needs a --because with the reason, in the same order")
    words = [notes.Note(text) for text in remarks]
    words += [notes.Note(why, cause) for cause, why in zip(ruled_out, reasons, strict=True)]
    words += [notes.Note("", cause, reinstated=True) for cause in reinstated]
    if not words:
        raise click.UsageError("nothing to note: give --add TEXT, or --rule-out CAUSE --because TEXT")
    page = out or case.with_name(f"{name_of(case)}.html")
    with output.locked(case.absolute().parent), output.edited(case):
        saved = output.saved_case(case)
        document = notes.noted(saved, words)
        if "redacted" in saved:  # a case to pass around stays one
            document = redact.redacted(document)
        if out is not None:
            found = allowed(Places(out, out.with_suffix(".case.json")), force=force)
            keep_inputs(found, [], [case])
        else:
            found = own(
                allowed(Places(page, None, default=frozenset(["page"])), force=force), saved["run"].get("identity") or [], force=force
            )
            found = replace(found, case=case)
        write_all(document, found)
    with output.edited(case):
        show(document, found.page)
