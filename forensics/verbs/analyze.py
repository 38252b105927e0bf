"""`forensics analyze`: one run, one page."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from forensics.errors import ForensicsError
from forensics.verbs import redact_output
from forensics.verbs.options import (
    FAIL_ON,
    UNHEALTHY,
    Wanted,
    attach,
    batches_option,
    browse,
    case_option,
    collected,
    data_option,
    fail_option,
    format_option,
    may_show,
    metric_option,
    open_option,
    outputs,
    run_config_option,
    run_option,
    say,
    show_option,
    steady,
)
from forensics.verbs.output_paths import places, publish

ONE_RUN = {"out": "--out", "format": "--format", "json_path": "--json", "md": "--md", "name": "--run", "manifest": "--batches"}


@dataclass(frozen=True)
class Options:
    """What is analyzed beside the run, and with which names and limits."""

    metrics: dict[str, str]
    manifest: Path | None
    data: Path | None
    show: bool
    baseline: str | None
    name: str | None
    run_config: bool
    fail_on: str | None
    open_page: bool


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@outputs
@case_option
@format_option
@metric_option
@batches_option
@data_option
@show_option
@click.option("--baseline", metavar="RUN", help="A known good run: where they part, and what that says about each cause.")
@run_option
@fail_option
@open_option
@run_config_option
@collected(wanted=Wanted, options=Options)
@click.pass_context
def analyze(ctx: click.Context, runs: tuple[str, ...], wanted: Wanted, options: Options) -> None:
    """Analyze RUN: a folder, one file, an fsspec URL (s3://...), a tracker's name of it, or - for a log that is piped in.

    Names are wandb:entity/project/run, mlflow:http://host:5000, trackio:project/run, and the address of a run's page. Reads TensorBoard event files, W&B files, Hugging Face trainer states, JSON, CSV, console logs and configs, and writes
    one HTML page and the case as JSON. If the folder holds several runs, each is judged: the report covers the worst, and
    names the others with their verdicts. Runs that differ only in their seed become one case. Several RUNs get a page each; one that
    cannot be read does not stop the others.
    """
    may_show(show=options.show, data=options.data, redact=wanted.redact)
    if wanted.format and (options.show or options.open_page):
        raise click.UsageError("--show-data and --open are for the page, which --format leaves out: give one of them")
    if len(runs) > 1 and (one := [o for o in ONE_RUN if ctx.get_parameter_source(o) is click.core.ParameterSource.COMMANDLINE]):
        raise click.UsageError(f"{ONE_RUN[one[0]]} is for one run, and {len(runs)} are given")
    codes = [_code(ctx, run, wanted, options, alone=len(runs) == 1) for run in runs]
    if code := next((c for c in (1, 2, UNHEALTHY) if c in codes), 0):
        ctx.exit(code)


def _code(ctx: click.Context, run: str, wanted: Wanted, options: Options, *, alone: bool) -> int:
    """The exit code of one run; among others an error is told, and costs only this one."""
    try:
        return _analyze(ctx, run, wanted, options)
    except ForensicsError as e:
        if alone:
            raise
        say(f"forensics: {run}: {e.message}")
        return e.code


def _analyze(ctx: click.Context, run: str, wanted: Wanted, options: Options) -> int:
    """Writes page and case of one run; the exit code."""
    from forensics import at_path, pipeline, progress

    known = redact_output.begin(ctx) if wanted.redact else None
    found = places(run, wanted, options.name)
    with progress.bar(ctx.obj["quiet"], shown_as=steady) as tick:

        def read(path: str, *, of_all: bool = True) -> list[Any]:
            return at_path.read_runs(path, run_config=options.run_config, metrics=options.metrics, of_all=of_all, progress=tick)

        beside = read(options.baseline, of_all=False) if options.baseline else []
        good = at_path.only(beside, options.baseline) if options.baseline else None
        here = read(run)
        chosen = at_path.choose(here, run, name=options.name, progress=tick)
        attach(chosen, options.manifest)
        case = pipeline.analyze_run(chosen, command=["forensics", *sys.argv[1:]], baseline=good)
        document, shown = _with_data(chosen, case, options.data, options.show) if options.data else (case.to_json(), None)
    if known is not None:
        redact_output.learn(known, [*here, *beside], [run, options.baseline])
    if not ctx.obj["quiet"]:
        _name_siblings(document)
    found = publish(document, found, [*here, *beside], [options.manifest, options.data], known=known, force=wanted.force, shown=shown)
    verdicts = {document["verdict"], *(other["verdict"] for other in document["run"]["siblings"])}
    if options.open_page:
        browse(found.page)
    return UNHEALTHY if options.fail_on and verdicts.intersection(FAIL_ON[options.fail_on]) else 0


def _with_data(run: Any, case: Any, data: Path, show: bool) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The case with what `--data` found, and with `--show-data` the samples for the page."""
    from forensics.batches import inspect_samples
    from forensics.read_data import reading

    found = inspect_samples.look(run, case, data)
    weighed = inspect_samples.weighed(run, case, found)
    return inspect_samples.document(weighed, found), reading.read(run, weighed, data, found) if show else None


def _name_siblings(document: dict[str, Any]) -> None:
    """Which of several runs the report covers and why, and for each of the others its verdict and the command that opens it."""
    from reports import run_list, schema

    for line in run_list.lines(schema.complete(document)):
        say(line)
