"""`forensics watch`: a run that is still going."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forensics.verbs import redact_output
from forensics.verbs.options import (
    REDACT,
    Wanted,
    address,
    browse,
    case_option,
    collected,
    metric_option,
    named_file,
    open_option,
    run_config_option,
    run_option,
    say,
    steady,
)
from forensics.verbs.output_paths import Places, earlier_case, places, written

if TYPE_CHECKING:
    from forensics.watching.loop import Follower, Seen

INTERRUPTED = 130


@dataclass(frozen=True)
class Options:
    """How a run is read and followed, and who is told."""

    metrics: dict[str, str]
    name: str | None
    run_config: bool
    every: float
    command: str | None
    webhook: str | None
    open_page: bool


@click.command()
@click.argument("run")
@click.option(
    "--every", type=click.FloatRange(min=0.2), default=5.0, show_default=True, metavar="SECONDS", help="Glance at the files so often."
)
@click.option("--once", is_flag=True, help="Look once and end; what the case here already says is no news. For cron.")
@click.option("--exec", "command", metavar="CMD", help="Run CMD on each new finding of severity warning or worse; facts in FORENSICS_... .")
@click.option("--webhook", metavar="URL", callback=address, help="Post each such finding there as JSON.")
@click.option("--out", type=click.Path(path_type=Path), callback=named_file, help="The report; default <run>.html in this folder.")
@click.option("--redact", is_flag=True, help=REDACT)
@click.option("--force", is_flag=True, help="Replace existing outputs.")
@case_option
@metric_option
@run_option
@open_option
@run_config_option
@collected(wanted=Wanted, options=Options)
@click.pass_context
def watch(ctx: click.Context, run: str, once: bool, wanted: Wanted, options: Options) -> None:
    """Follow RUN, a file or folder that grows, and print a line when there is news.

    The page and the case are written again after each whole look. A look is taken as often as its cost allows (1.2 % of a core); new
    lines of event files, JSON lines, CSV and console logs are heard by live guards in between, and an alarm brings the next look forward. Ends
    when the run has ended.
    """
    from forensics import remote, standard_input
    from forensics.watching.growth import Growth

    if remote.is_url(remote.local(run)) or run == standard_input.NAME:
        raise click.UsageError("watch follows files on this machine; fetch the run first, or run it where the files are")
    root = Path(remote.local(run))
    if not root.exists():
        raise click.UsageError(f"no such file or folder: {run}")
    known = redact_output.begin(ctx) if wanted.redact else None
    found = places(run, wanted, options.name, again=True)
    follower = _follower(Growth(root), run, found, wanted, options, known)
    try:
        if once:
            follower.once()
            return
        how = follower.until_it_ends(options.every)
        click.echo(steady(f"the run has ended: {how}"))
        say(follower.budget.told())
    except KeyboardInterrupt:
        say(f"stopped: {follower.budget.told()}")
        ctx.exit(INTERRUPTED)


def _follower(growth: Any, run: str, found: Places, wanted: Wanted, options: Options, known: Any) -> Follower:
    from forensics.watching.loop import Follower, Listener
    from forensics.watching.told import Told

    told = Told(options.command, options.webhook, say, steady)
    here = [found]  # where the page and the case are, once they are written

    def news(line: str) -> None:
        click.echo(steady(f"{time.strftime('%H:%M:%S')} {line}"))

    def finding(document: dict[str, Any], of: dict[str, Any]) -> None:
        told.of(document, of, str((here[0].case or here[0].page).absolute()), str(here[0].page.absolute()))

    def look() -> Seen:
        return _look(run, here, growth, wanted, options, known)

    return Follower(growth, look, Listener(news, say, finding))


def _look(run: str, here: list[Places], growth: Any, wanted: Wanted, options: Options, known: Any) -> Seen:
    """Reads and judges the run, and writes its page and case where the last look did."""
    from forensics import at_path, pipeline
    from forensics.watching.loop import Seen

    runs = at_path.read_runs(run, run_config=options.run_config, metrics=options.metrics)
    chosen = at_path.choose(runs, run, name=options.name)
    document = pipeline.analyze_run(chosen, command=["forensics", "watch", run]).to_json()  # the address of a webhook is a secret
    earlier = earlier_case(here[0], document["run"]["identity"])
    if known is not None:
        redact_output.learn(known, runs, [run])
    at, document = written(document, here[0], runs, [], known=known, force=wanted.force and not growth.ours)
    here[0] = replace(at, default=frozenset(at.named()))  # from now on it is ours, and replaced only as long as it is
    if options.open_page and not growth.ours:
        browse(at.page)
    growth.ours = {os.path.realpath(p) for p in at.named().values()}
    return Seen(runs, document, earlier)
