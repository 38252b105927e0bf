"""`forensics audit`: every run below some folders, and what they share."""

from __future__ import annotations

import warnings
from pathlib import Path

import click

from forensics.errors import ForensicsError
from forensics.verbs import redact_output
from forensics.verbs.options import REDACT, UNHEALTHY, run_config_option, say, steady

OUT = "audit"


@click.command()
@click.argument("roots", nargs=-1, required=True, metavar="ROOT...")
@click.option("--out", metavar="DIR", help=f"The audit's folder or URL; default ./{OUT}.")
@click.option("--jobs", type=click.IntRange(1), help="Runs at once; default the number of cores.")
@click.option("--engine", type=click.Choice(["local", "dask", "ray"]), default="local", show_default=True, help="What runs the workers.")
@click.option("--resume", is_flag=True, help="Continue the audit in DIR: analyze only new and changed runs.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="The first N run folders only.")
@click.option("--known", metavar="FILE", help="Findings already reviewed, one a line: RUN FINDING WHY; they no longer count.")
@click.option("--since", metavar="AUDIT", help="An earlier audit's folder, to report what is new, gone or worse.")
@click.option("--pages", type=click.IntRange(0), default=50, show_default=True, metavar="N", help="Pages for the N worst runs.")
@click.option(
    "--timeout", type=click.FloatRange(min=1), default=300.0, show_default=True, metavar="S", help="Give up a run after S seconds."
)
@click.option("--fail-on", type=click.Choice(["unhealthy"]), help="Exit with 3 if any run has this verdict.")
@click.option("--redact", is_flag=True, help=f"{REDACT[:-1]}; also deletes what --resume needs.")
@click.option("--force", is_flag=True, help="Replace an earlier audit in DIR.")
@run_config_option
@click.pass_context
def audit(
    ctx: click.Context,
    roots: tuple[str, ...],
    out: str | None,
    jobs: int | None,
    engine: str,
    resume: bool,
    limit: int | None,
    known: str | None,
    since: str | None,
    pages: int,
    timeout: float,
    fail_on: str | None,
    redact: bool,
    run_config: bool,
    force: bool,
) -> None:
    """Analyze every run below ROOT... (folders, files, fsspec URLs) and report what the runs share.

    Writes index.html, audit.parquet (one row a run), audit.json, summary.md, and runs/<id>.html for those worth opening.
    Each result is saved as soon as it is ready: after a kill, --resume continues. One bad run never stops the rest.
    """
    from forensics import audit as many
    from forensics import progress
    from forensics.audit import written_files
    from reports import audit_page as drawn
    from reports import html

    if redact:
        redact_output.begin(ctx)
    if out == "":
        raise click.BadParameter("give the name of a folder to write", param_hint="--out")
    target = out or OUT
    if not (resume or force or out is None) and any(
        written_files.is_ours(target, name, written_files.listed(target)) for name in many.OUTPUTS
    ):
        raise ForensicsError(f"{target} already holds an audit", "Use --resume to continue it, --force to replace it.")
    if out is None and not resume and not force:
        _own(Path(OUT))
    with progress.bar(ctx.obj["quiet"], shown_as=steady, rate=True) as tick:
        document = many.audit(
            roots,
            target,
            many.Outputs(html.render, drawn.render, drawn.markdown),
            engine=engine,
            jobs=jobs,
            resume=resume,
            limit=limit,
            known=known,
            since=since,
            pages=pages,
            seconds=timeout,
            redact=redact,
            run_config=run_config,
            prepare=_prepare,
            progress=tick,
        )
    for id in document["pages_not_written"]:
        say(f"{target}/runs/{id}.html or its case was not written by an audit: not overwritten, so {id} has no page")
    click.echo(drawn.terminal(document))
    click.echo(steady(f"audit: {target.rstrip('/')}/index.html"))
    if fail_on and document["verdicts"][fail_on]:
        ctx.exit(UNHEALTHY)


def _prepare() -> None:
    """In each worker, as in the command itself."""
    warnings.simplefilter("ignore")


def _own(folder: Path) -> None:
    """The default folder may be replaced where all that is in it is an audit of ours."""
    from forensics import audit as many
    from forensics.audit import storage

    if folder.exists() and not folder.is_dir():
        raise ForensicsError(f"{folder} exists already, and is no folder", "Give another place with --out.")
    strange = [p.name for p in folder.iterdir() if p.name not in {*many.OUTPUTS, "runs", storage.STATE}] if folder.exists() else []
    if strange:
        raise ForensicsError(f"{folder} holds {strange[0]}, which is no part of an audit", "Give another place with --out.")
