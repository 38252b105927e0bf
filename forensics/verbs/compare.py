"""`forensics compare`: where two runs part."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import click

from forensics.verbs import redact_output
from forensics.verbs.options import REDACT, Wanted, browse, collected, named_file, open_option, run_config_option, steady, stem_of
from forensics.verbs.output_paths import Places, allowed, keep_inputs, own, renamed


@click.command()
@click.argument("run_a", metavar="RUN_A")
@click.argument("run_b", metavar="RUN_B")
@click.option("--out", type=click.Path(path_type=Path), callback=named_file, help="The report; default <a>-<b>.html in this folder.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), callback=named_file, help="The comparison as JSON, too.")
@click.option("--redact", is_flag=True, help=REDACT)
@click.option("--force", is_flag=True, help="Replace existing outputs.")
@open_option
@run_config_option
@collected(wanted=Wanted)
@click.pass_context
def compare(ctx: click.Context, run_a: str, run_b: str, wanted: Wanted, open_page: bool, run_config: bool) -> None:
    """Find where RUN_A and RUN_B diverge, and what differs in config, environment, data and recipe.

    Compares the loss by step, wall time, tokens and FLOPs, as far as these were logged. Each path must hold one run; of a folder
    with several, give the path of one.
    """
    from forensics import at_path, output, progress, redact
    from forensics.many_runs import side_by_side as two
    from reports import compare_page as drawn

    known = redact_output.begin(ctx) if wanted.redact else None
    default = frozenset(["page"] if wanted.out is None else [])
    page = wanted.out or Path(f"{stem_of(run_a)}-{stem_of(run_b)}.html")
    found = allowed(Places(page, wanted.json_path, None, default), force=wanted.force)
    with progress.bar(ctx.obj["quiet"], shown_as=steady) as tick:
        both = [at_path.read_runs(path, run_config=run_config, progress=tick) for path in (run_a, run_b)]
        chosen = [at_path.only(runs, path) for runs, path in zip(both, (run_a, run_b), strict=True)]
        document: dict[str, Any] = two.compare(*chosen, command=["forensics", *sys.argv[1:]])
    if known is not None:
        redact_output.learn(known, chosen)
        found, document = renamed(found, known, force=wanted.force), redact.redacted(document, known)
    with output.locked(found.page.absolute().parent):
        found = own(found, document["identity"], force=wanted.force)
        keep_inputs(found, [run for runs in both for run in runs])
        files: list[tuple[Path, str | bytes]] = [(found.page, drawn.render(document))]
        if found.case is not None:
            files.append((found.case, output.case_json(document)))
        output.write_all(files)
    click.echo(drawn.terminal(document, width=min(shutil.get_terminal_size((100, 24)).columns, 110)))
    click.echo(steady(f"report: {found.page}"))
    if open_page:
        browse(found.page)
