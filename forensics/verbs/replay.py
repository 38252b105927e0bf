"""`forensics replay`: the trouble again, by experiment."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click

from forensics.verbs import redact_output
from forensics.verbs.options import (
    Wanted,
    case_option,
    collected,
    may_show,
    named_file,
    outputs,
    run_config_option,
    run_option,
    say,
    show_option,
    steady,
)
from forensics.verbs.output_paths import places, publish


def _span(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    if value is None:
        return None
    first, _, last = value.partition(":")
    if not first.isdigit() or not last.isdigit() or int(last) < int(first):
        raise click.BadParameter("give A:B, two steps as the log labels them, such as 400:432")
    return int(first), int(last)


MORE = click.FloatRange(min=0, min_open=True)


@dataclass(frozen=True)
class Choices:
    """What is replayed, with what, and for how long."""

    adapter: str | None
    steps: tuple[int, int] | None
    checkpoint: str | None
    device: str
    python: str
    budget: int | None
    timeout: float
    max_time: float | None
    memory: float | None
    processes: int
    check: bool
    score: bool
    across: bool
    skip_list: Path | None
    data: Path | None
    show: bool


@click.command()
@click.argument("run", required=False)
@click.option("--adapter", help="Your Python file with build(), batch(step), loss(model, batch); or `hf`, `lightning`, `nanogpt`.")
@click.option("--steps", callback=_span, metavar="A:B", help="Replay from step A and explain the worst effect up to step B.")
@click.option("--checkpoint", type=click.Path(), help="Start from this one, a path or URL; default the last good one before the failure.")
@click.option("--device", default="auto", show_default=True, help="cuda or cpu; auto takes CUDA if available.")
@click.option("--python", default=sys.executable, help="The Python of the training environment; default the one that runs forensics.")
@click.option("--budget", type=click.IntRange(min=1), help="Training steps to spend; default grows with the window.")
@click.option("--timeout", type=float, default=300, show_default=True, help="Seconds that one step may take.")
@click.option("--max-time", type=MORE, metavar="MINUTES", help="Begin no experiment after so long; what was learned until then counts.")
@click.option("--memory", type=MORE, metavar="GB", help="States of the training kept in memory, 4 GB by default; more go to disk.")
@click.option("--processes", type=click.IntRange(min=1), default=1, show_default=True, help="Ranks of a run of several, on this machine.")
@click.option(
    "--check", is_flag=True, help="Only say whether the adapter is the run's: what it loads, and how it meets the log. Seconds, no report."
)
@click.option(
    "--score", is_flag=True, help="Rank the batches of the window by one forward pass, with p-values from ordinary batches. No report."
)
@click.option("--across", is_flag=True, help="The loss of the same batches at every checkpoint: where a slow trouble began. No report.")
@click.option(
    "--skip-list",
    type=click.Path(path_type=Path),
    callback=named_file,
    help="Also write the blamed steps and samples as JSON, to leave out next time.",
)
@click.option("--init", is_flag=True, help="Write a commented adapter to the path of --adapter (adapter.py), and stop.")
@click.option("--data", type=click.Path(path_type=Path), help="With --show-data: samples from here, not from the adapter's batches.")
@show_option
@outputs
@case_option
@run_option
@run_config_option
@collected(wanted=Wanted, choices=Choices)
@click.pass_context
def replay(ctx: click.Context, run: str | None, choices: Choices, init: bool, wanted: Wanted, name: str | None, run_config: bool) -> None:
    """Run the steps around the failure again, and find its cause by experiment.

    The adapter, and the file that FORENSICS_MODULE names for a ready one, are the only files of yours that are ever run, in a process
    of their own. Replay reproduces the steps from the last good checkpoint, bisects batches and samples, and changes learning rate, optimizer and precision one at a time.
    """
    from forensics import at_path, outlines, output, progress
    from forensics.replays import into_case, skip_list, template

    if init:
        output.check(path := Path(choices.adapter or "adapter.py"), force=wanted.force)
        output.write(path, template.TEXT)
        click.echo(steady(str(path)))
        return
    if run is None or choices.adapter is None:
        raise click.UsageError("give RUN and --adapter FILE.py; `forensics replay --init` writes one to fill in")
    may_show(show=choices.show, data=choices.data or Path(choices.adapter), redact=wanted.redact)
    given = {k: v for k, v in asdict(choices).items() if k not in ("data", "score", "across", "skip_list")}
    given |= {"checkpoint": str(ctx.with_resource(outlines.here(choices.checkpoint)))} if choices.checkpoint else {}
    options = into_case.options_of(**given)
    if choices.check or choices.score or choices.across:
        ctx.exit(_only(ctx, run, options, wanted, name=name, run_config=run_config, what=choices))
    known = redact_output.begin(ctx) if wanted.redact else None
    if choices.skip_list:
        output.check(choices.skip_list, force=wanted.force)
    found = places(run, wanted, name)
    kept = found.page.with_suffix(f".replay-{hashlib.sha256(os.path.realpath(run).encode()).hexdigest()[:8]}.jsonl")  # of this run alone
    options = options if wanted.redact else replace(options, journal=kept)  # it holds what the adapter says
    with progress.bar(ctx.obj["quiet"], shown_as=steady) as tick:
        runs = at_path.read_runs(run, run_config=run_config, progress=tick)
        chosen = at_path.choose(runs, run, name=name, progress=tick)
        case, result = into_case.replayed(chosen, options, tick, command=["forensics", *sys.argv[1:]])
        shown = _samples(chosen, case, result, options.adapter, choices.data) if choices.show else None
    if known is not None:
        redact_output.learn(known, runs, [run])
    found = publish(case.to_json(), found, runs, [options.adapter, choices.data], known=known, force=wanted.force, shown=shown)
    if choices.skip_list:
        output.write(choices.skip_list, json.dumps(skip_list.listed(result.culprits), indent=1, default=str) + "\n")
    if options.journal:
        _settle_journal(result, kept)
    if result.document.get("why"):
        click.echo(steady(f"replay: {result.document['verdict']}. {result.document['why']}"))
    if result.failed:
        _say_why(result, found.page.with_suffix(".traceback.txt"))
        ctx.exit(130 if result.interrupted else 1)


def _settle_journal(result: Any, kept: Path) -> None:
    """A journal is of use only to a replay that goes on; a finished one leaves none behind."""
    from forensics.replays import advice

    if result.recalled:
        say(f"forensics: {result.recalled:,} of the steps were known from {kept}, which an earlier start has left")
    if not (result.failed or advice.stopped_early(result.document)):
        kept.unlink(missing_ok=True)
    elif kept.exists():
        say(f"forensics: what was learned is in {kept}: the same command, with more budget or time, goes on from there")


def _only(ctx: click.Context, path: str, options: Any, wanted: Wanted, *, name: str | None, run_config: bool, what: Choices) -> int:
    """Prints what the check of the adapter came to, which batches stand out, or what each checkpoint makes of the same ones; the exit code: 0 where the replay meets the log."""
    from forensics import at_path, output, pipeline, progress
    from forensics.replays import across, into_case, score_table
    from forensics.replays.client import ReplayFailed
    from forensics.replays.score import scored

    if wanted.json_path:
        output.check(wanted.json_path, force=wanted.force)
    with progress.bar(ctx.obj["quiet"], shown_as=steady) as tick:
        runs = at_path.read_runs(path, run_config=run_config, progress=tick)
        chosen = at_path.choose(runs, path, name=name, progress=tick)
        try:
            if what.across:
                found = across.across(chosen, options, tick or (lambda *_: None))
                lines, met = across.lines(found), True
            elif what.score:
                found = scored(chosen, pipeline.analyze_run(chosen), options, tick or (lambda *_: None))
                lines, met = score_table.lines(found), True
            else:
                _, result = into_case.replayed(chosen, options, tick)
                found = result.document.get("check", {})
                lines, met = found.get("lines", []), bool(found.get("met"))
                lines = [*lines, f"The check stopped: {result.failed}."] if result.failed else lines
        except ReplayFailed as e:
            lines, met, found = [f"The replay stopped: {e.sentence}."], False, {}
    for line in lines:
        click.echo(steady(line))
    if wanted.json_path and found:
        output.write(wanted.json_path, json.dumps(found, indent=1, default=str) + "\n")
    return 0 if met else 1


def _samples(run: Any, case: Any, result: Any, adapter: Path, data: Path | None) -> dict[str, Any]:
    """The samples of the culprits: rows of the data where these are given, else what the adapter's batches held."""
    from forensics.read_data import reading
    from forensics.replays import samples_shown

    return reading.read(run, case, data) if data is not None else samples_shown.shown(run, result, adapter)


def _say_why(result: Any, traceback: Path) -> None:
    """Why the replay stopped; what the adapter raised goes into a file of its own."""
    from forensics import output
    from parsers.secrets import mask_text

    say(f"forensics: replay stopped: {result.failed}")
    if result.traceback:
        output.write(traceback, f"forensics replay: what the adapter raised\n\n{redact_output.hidden(mask_text(result.traceback))}")
        say(f"  the traceback is in {traceback}; the analysis without replay stands")
