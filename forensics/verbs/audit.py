"""`forensics audit`: every run below some folders, and what they share."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from forensics.errors import ForensicsError
from forensics.verbs import redact_output
from forensics.verbs.options import (
    FAIL_ON,
    FORMATS,
    REDACT,
    UNHEALTHY,
    address,
    browse,
    collected,
    notice,
    open_option,
    run_config_option,
    say,
    steady,
)

OUT, NEW = "audit", "new"


@dataclass(frozen=True)
class Options:
    """What forensics.audits.Options has, too, which loads too much for `--help`."""

    engine: str
    jobs: int | None
    resume: bool
    limit: int | None
    known: str | None
    since: str | None
    history: str | None
    pages: int
    timeout: float
    redact: bool
    run_config: bool


@dataclass(frozen=True)
class After:
    """What is printed of the audit, who is told of what is new, what its exit code tells, and whether its page is opened."""

    format: str | None
    fail_on: str | None
    webhook: str | None
    open_page: bool


def _printed(document: dict[str, Any], format: str | None, page: str) -> None:
    """The summary and where the page is, or the audit in another format alone."""
    from reports import audit_page, junit, sarif, slack

    if format is None:
        click.echo(audit_page.terminal(document))
        click.echo(steady(f"audit: {page}"))
    else:
        drawn = {"sarif": sarif.audit, "junit": junit.audit, "md": audit_page.markdown, "slack": slack.audit, "json": _json}[format]
        click.echo(drawn(document), nl=False)
        notice(f"audit: {page}")


def _json(document: dict[str, Any]) -> str:
    """What audit.json holds."""
    from forensics import output

    return output.case_json({k: v for k, v in document.items() if k not in ("rows", "curves")})


@click.command()
@click.argument("roots", nargs=-1, required=True, metavar="ROOT...")
@click.option("--out", metavar="DIR", help=f"The audit's folder or URL; default ./{OUT}.")
@click.option("--jobs", type=click.IntRange(1), help="Runs at once; default the number of cores, of a cluster all that it has.")
@click.option("--engine", type=click.Choice(["local", "dask", "ray"]), default="local", show_default=True, help="What runs the workers.")
@click.option("--resume", is_flag=True, help="Continue the audit in DIR: analyze only new and changed runs.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="The first N run folders only.")
@click.option("--known", metavar="FILE", help="Findings already reviewed, one a line: RUN FINDING WHY; they no longer count.")
@click.option("--since", metavar="AUDIT", help="An earlier audit's folder, to report what is new, gone or worse.")
@click.option(
    "--history", metavar="DIR", help="Add this audit to the history in this folder or URL, and tell what is new since the last one."
)
@click.option("--webhook", metavar="URL", callback=address, help="Post what is new in --history there, as a Slack message.")
@click.option("--pages", type=click.IntRange(0), default=50, show_default=True, metavar="N", help="Pages for the N worst runs.")
@click.option(
    "--timeout", type=click.FloatRange(min=1), default=300.0, show_default=True, metavar="S", help="Give up a run after S seconds."
)
@click.option(
    "--fail-on",
    type=click.Choice([*FAIL_ON, NEW]),
    help="Exit with 3 if any run has this verdict or a worse one; new: a serious finding that --history has not.",
)
@click.option("--format", type=click.Choice([*FORMATS, "json"]), help="Print this instead of the summary.")
@click.option("--redact", is_flag=True, help=f"{REDACT[:-1]}; also deletes what --resume needs.")
@click.option("--force", is_flag=True, help="Replace an earlier audit in DIR.")
@open_option
@run_config_option
@collected(options=Options, after=After)
@click.pass_context
def audit(ctx: click.Context, roots: tuple[str, ...], out: str | None, options: Options, after: After, force: bool) -> None:
    """Analyze every run below ROOT... (folders, files, fsspec URLs, projects such as wandb:entity/project), and what the runs share.

    Writes index.html, audit.parquet (one row a run), audit.json, summary.md, and runs/<id>.html for those worth opening.
    Each result is saved as soon as it is ready: after a kill, --resume continues. One bad run never stops the rest.
    """
    from forensics import audits as many
    from forensics import progress
    from reports import audit_page as drawn
    from reports import html

    if options.history is None and (after.webhook or after.fail_on == NEW):
        raise click.UsageError(
            f"{'--webhook' if after.webhook else '--fail-on new'} tells what is new since the last night: give --history"
        )
    if options.redact:
        redact_output.begin(ctx)
    target = _target(out, replace_ours=options.resume or force)
    outputs = many.Outputs(html.render, drawn.render, drawn.markdown)
    with progress.bar(ctx.obj["quiet"], shown_as=steady, rate=True) as tick:
        document = many.audit(roots, target, outputs, many.Options(**asdict(options), prepare=_prepare), tick)
    for id in document["pages_not_written"]:
        say(f"{target}/runs/{id}.html or its case was not written by an audit: not overwritten, so {id} has no page")
    page = f"{target.rstrip('/')}/index.html"
    _printed(document, after.format, page)
    if after.open_page:
        browse(page)
    if document["history"] is not None:
        _tell(document, after)
    if after.fail_on in FAIL_ON and any(document["verdicts"][v] for v in FAIL_ON[after.fail_on]):
        ctx.exit(UNHEALTHY)
    if after.fail_on == NEW and document["history"]["new"]:
        ctx.exit(UNHEALTHY)


def _tell(document: dict[str, Any], after: After) -> None:
    """Of the history: what could not be read, and to the webhook what is new. Raises ForensicsError where that cannot be told, though asked."""
    from forensics.watching import told
    from reports import slack

    known = document["history"]
    for line in known["notices"]:
        say(line)
    if after.webhook and known["new"]:
        told.post(after.webhook, slack.audit(document), say)
    if not known["nights"] and not known["notices"]:
        notice("first night of this history: nothing to compare with")
    if not known["nights"] and known["notices"] and after.fail_on == NEW:
        raise ForensicsError("no earlier night can be read: cannot tell what is new", "This night was added; the next one can tell.")


def _prepare() -> None:
    """In each worker, as in the command itself."""
    warnings.simplefilter("ignore")


def _target(out: str | None, *, replace_ours: bool) -> str:
    """The audit's folder: a default one holds nothing else. Raises ForensicsError where an earlier audit lies there and none may be replaced."""
    from forensics import audits as many
    from forensics.audits import storage, written_files

    if out == "":
        raise click.BadParameter("give the name of a folder to write", param_hint="--out")
    if replace_ours:
        return out or OUT
    written_files.refuse_another(out or OUT)
    if out is not None:
        return out
    folder = Path(OUT)
    if folder.exists() and not folder.is_dir():
        raise ForensicsError(f"{folder} exists already, and is no folder", "Give another place with --out.")
    strange = [p.name for p in folder.iterdir() if p.name not in {*many.OUTPUTS, "runs", storage.STATE}] if folder.exists() else []
    if strange:
        raise ForensicsError(f"{folder} holds {strange[0]}, which is no part of an audit", "Give another place with --out.")
    return OUT
