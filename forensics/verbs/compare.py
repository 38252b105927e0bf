"""`forensics compare`: where two runs part."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import click

from forensics.verbs import redaction
from forensics.verbs.shared import REDACT, named_file, steady, stem_of, without_pandas


@click.command()
@click.argument("run_a", metavar="RUN_A")
@click.argument("run_b", metavar="RUN_B")
@click.option("--out", type=click.Path(path_type=Path), callback=named_file, help="The report; default <a>-<b>.html in this folder.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), callback=named_file, help="The comparison as JSON, too.")
@click.option("--redact", is_flag=True, help=REDACT)
@click.option("--force", is_flag=True, help="Replace existing outputs.")
@click.pass_context
def compare(ctx: click.Context, run_a: str, run_b: str, out: Path | None, json_path: Path | None, redact: bool, force: bool) -> None:
    """Where RUN_A and RUN_B part, and what differs in config, environment, data and recipe.

    The loss is set against steps, wall time, tokens and FLOPs, as far as they were logged.
    """
    from forensics import output, pipeline, progress
    from forensics.comparing import compare as two
    from reports import compare as drawn

    without_pandas()
    known = redaction.begin(ctx) if redact else None
    page = out or Path(f"{stem_of(run_a)}-{stem_of(run_b)}.html")
    output.check(page, force=force, replace_own=out is None)
    if json_path is not None:
        output.check(json_path, force=force)
    with progress.bar(ctx.obj["quiet"], shown_as=steady) as tick:
        runs = [pipeline.choose(pipeline.read_runs(path, progress=tick)) for path in (run_a, run_b)]
        document: dict[str, Any] = two.compare(*runs, command=["forensics", *sys.argv[1:]])
    if known is not None:
        (page,) = redaction.renamed(known, runs, (page, out is None), force=force)
        document = redaction.redacted(document, known)
    files: list[tuple[Path, str | bytes]] = [(page, drawn.render(document))]
    if json_path is not None:
        files.append((json_path, output.case_json(document)))
    output.write_all(files)
    click.echo(drawn.terminal(document, width=min(shutil.get_terminal_size((100, 24)).columns, 110)))
    click.echo(steady(f"report: {page}"))
