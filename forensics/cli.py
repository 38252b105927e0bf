"""The command line: each verb reads its arguments, calls one function, and prints a few lines.

Results go to standard output, messages to standard error. Exit codes: 0 done, 1 could not do it, 2 usage,
3 `--fail-on unhealthy` met. Heavy imports stay inside the verbs, so that `forensics --help` is quick.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from forensics.errors import ForensicsError
from forensics.version import VERSION

UNHEALTHY = 3


class Verbs(click.Group):
    """Turns a ForensicsError into two lines and exit 1, and shows a traceback only where asked."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ForensicsError as e:
            self._trace(ctx)
            _say(f"forensics: {e.message}")
            if e.hint:
                _say(f"  {e.hint}")
        except KeyboardInterrupt:
            _say("forensics: interrupted")
            ctx.exit(130)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError as e:
            self._trace(ctx)
            _say(f"forensics: {e.strerror or e}: {e.filename or ''}".rstrip(": "))
        except (click.exceptions.Exit, click.ClickException, click.Abort):
            raise
        except Exception as e:
            self._trace(ctx)
            _say(f"forensics: this is a mistake of ours: {type(e).__name__}: {e}")
            _say("  `forensics --debug ...` shows where; please report it with the file that caused it.")
        return ctx.exit(1)

    def _trace(self, ctx: click.Context) -> None:
        if ctx.params.get("debug"):
            traceback.print_exc()


@click.group(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(VERSION, prog_name="forensics")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@click.option("--quiet", "-q", is_flag=True, help="No progress, no messages; results only.")
@click.pass_context
def main(ctx: click.Context, debug: bool, quiet: bool) -> None:
    """Find out why a training run went wrong, from what it left behind."""
    ctx.obj = {"quiet": quiet}


def _outputs(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--force", is_flag=True, help="Replace existing outputs."),
        click.option("--redact", is_flag=True, help="Hide hosts, users, mail addresses and absolute paths."),
        click.option("--md", type=click.Path(path_type=Path), help="Write a Markdown summary here, too."),
        click.option("--out", type=click.Path(path_type=Path), help="The report; default <run>.html in this folder."),
    ):
        command = option(command)
    return command


def _metrics(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [v.partition("=") for v in values]
    if any(not name or not tag for name, _, tag in pairs):
        raise click.BadParameter("give NAME=TAG, such as loss.train=my/own/tag")
    return {name: tag for name, _, tag in pairs}


_metric_option = click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME=TAG",
    callback=_metrics,
    help="What a tag of yours means, e.g. loss.train=my/own/tag.",
)


@main.command()
@click.argument("run")
@_outputs
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="The case; default <run>.case.json.")
@_metric_option
@click.option("--fail-on", type=click.Choice(["unhealthy"]), help="Exit with 3 where the verdict is this.")
@click.pass_context
def analyze(
    ctx: click.Context,
    run: str,
    out: Path | None,
    json_path: Path | None,
    md: Path | None,
    metrics: dict[str, str],
    redact: bool,
    fail_on: str | None,
    force: bool,
) -> None:
    """Analyze RUN: a folder, one file, or an fsspec URL (s3://...).

    Reads TensorBoard event files, W&B files, Hugging Face trainer states, JSON, CSV, console logs and configs, and writes
    one HTML page and the case as JSON. Where several runs lie in the folder, the one written last is analyzed.
    """
    from forensics import output, pipeline, progress

    _without_pandas()
    stem = _stem(run)
    named = out is not None
    page = out or Path(f"{stem}.html")
    case_path = json_path or (page.with_suffix(".case.json") if named else Path(f"{stem}.case.json"))
    for path, own in ((page, not named), (case_path, json_path is None and not named), (md, False)):
        if path is not None:
            output.check(path, force=force, replace_own=own)
    with progress.bar(ctx.obj["quiet"]) as tick:
        runs = pipeline.read_runs(run, metrics=metrics, progress=tick)
        chosen = pipeline.choose(runs)
        document = pipeline.analyze_run(chosen, command=["forensics", *sys.argv[1:]]).to_json()
    if not ctx.obj["quiet"]:
        _name_siblings(chosen)
    _write_all(document, page, case_path, md, redact=redact)
    _show(document, page)
    if fail_on and document["verdict"] == fail_on:
        ctx.exit(UNHEALTHY)


@main.command()
@click.argument("run")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="The folder for the Parquet files.")
@_metric_option
@click.option("--force", is_flag=True, help="Replace existing files.")
@click.pass_context
def tables(ctx: click.Context, run: str, out: Path, metrics: dict[str, str], force: bool) -> None:
    """Write the tables of RUN as Parquet: metrics, events, config, batches, checkpoints and more.

    Values are as logged: nothing is converted or dropped. Several runs below RUN go to a folder each.
    """
    import io

    import pyarrow.parquet as pq

    from forensics import output, pipeline, progress

    _without_pandas()
    with progress.bar(ctx.obj["quiet"]) as tick:
        runs = pipeline.read_runs(run, metrics=metrics, progress=tick)
    files = [
        (out / (r.id if len(runs) > 1 else ".") / f"{name}.parquet", table)
        for r in runs
        for name, table in r.tables.items()
    ]
    for path, _ in files:
        output.check(path, force=force)
    for path, table in files:
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="zstd")
        output.write(path, buffer.getvalue())
    for r in runs:
        rows = ", ".join(f"{t.num_rows} {name}" for name, t in r.tables.items() if t.num_rows)
        click.echo(f"{r.id}: {rows or 'no rows'}")


@main.command()
@click.argument("run")
@click.option("--step", type=int, required=True, help="An optimizer step, as the log labels it.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def batch(run: str, step: int, as_json: bool) -> None:
    """Print which samples were in the batch of a step of RUN, and how that is known.

    Known where a file of the run records it (a manifest, or ids in the log); otherwise the answer is "unknown", and why.
    """
    from forensics import batch_links, pipeline

    _without_pandas()
    found = batch_links.answer(pipeline.choose(pipeline.read_runs(run)), step)
    if as_json:
        click.echo(json.dumps(found))
    else:
        click.echo(f"step {step}: {', '.join(map(str, found['samples'])) or 'unknown'}")
        click.echo(f"shard {found['shard']}" if found["shard"] else "shard unknown")
        click.echo(f"{found['how']}: {found['why']}")


@main.command()
@click.argument("case", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_outputs
def render(case: Path, out: Path | None, md: Path | None, redact: bool, force: bool) -> None:
    """Write the page again from a saved CASE.json; the same case gives the same bytes."""
    from forensics import output

    try:
        document = json.loads(case.read_text("utf-8"))
        known = document["schema"]
    except (ValueError, KeyError, TypeError, RecursionError) as e:
        raise ForensicsError(
            f"{case} is no case of ours: {e}", "`forensics analyze RUN --json CASE.json` writes one."
        ) from e
    if known != 1:
        raise ForensicsError(f"{case} has schema {known}, this version knows schema 1", "Analyze the run again.")
    name = case.name.removesuffix(".json").removesuffix(".case")
    page = out or Path(f"{name}.html")
    for path in (page, md):
        if path is not None:
            output.check(path, force=force, replace_own=out is None)
    _write_all(document, page, None, md, redact=redact)
    click.echo(str(page))


@main.command()
@click.argument("topic", required=False, metavar="[ID]")
def explain(topic: str | None) -> None:
    """Print what a detector or cause looks at, how it decides, and when it cannot tell. Without ID: the list."""
    from forensics import explain as pages

    click.echo(pages.page(topic) if topic else pages.index())


@main.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("path2", type=click.Path(path_type=Path), required=False)
@click.option("--json", "as_json", is_flag=True, help="Everything as JSON on standard output.")
@click.pass_context
def checkpoint(ctx: click.Context, path: Path, path2: Path | None, as_json: bool) -> None:
    """What is in the checkpoint PATH, what is sick, and what changed from PATH to PATH2.

    Reads safetensors, torch, torch.distributed, numpy and Keras files and folders of them. Nothing in them is run.
    """
    from forensics import checkpoint as checkpoints
    from forensics import progress
    from reports import checkpoint as page

    with progress.bar(ctx.obj["quiet"]) as tick:
        document = checkpoints.report(path, path2, progress=tick)
    if as_json:
        click.echo(json.dumps(document, indent=1, allow_nan=False))
    else:
        click.echo(page.render(document, width=max(shutil.get_terminal_size((110, 24)).columns, 80)))


def _without_pandas() -> None:
    """pyarrow imports pandas, where it is installed, merely to ask whether a list is a Series: half a second of nothing.

    It asks once in the life of a process; this answers "not installed". Only for the command, never for `import forensics`.
    """
    import pyarrow

    class NotInstalled:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            if name == "pandas":
                raise ModuleNotFoundError(name)

    sys.meta_path.insert(0, NotInstalled)
    try:
        pyarrow.array([0])
    finally:
        sys.meta_path.remove(NotInstalled)


def _stem(run: str) -> str:
    name = run.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1]
    return name if name not in ("", ".", "..") else Path(run).resolve().name or "run"


def _name_siblings(run: Any) -> None:
    """Which of several runs was analyzed, and the command that opens each of the others."""
    if run.siblings:
        which = "one configuration under several seeds; shown is" if run.group else "this is the one written last,"
        _say(f"{len(run.siblings) + 1} runs lie here, {which} {run.path}. The others:")
        for path in run.siblings[:10]:
            _say(f"  forensics analyze {path}")
        if len(run.siblings) > 10:
            _say(f"  and {len(run.siblings) - 10} more")


def _write_all(document: dict[str, Any], page: Path, case_path: Path | None, md: Path | None, *, redact: bool) -> None:
    from forensics import output
    from reports import html, markdown

    if redact:
        from forensics.redact import redacted

        document = redacted(document)
    output.write(page, html.render(document))
    if case_path is not None:
        output.write(case_path, output.case_json(document))
    if md is not None:
        output.write(md, markdown.render(document))


def _show(document: dict[str, Any], page: Path) -> None:
    from reports import terminal

    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    width = min(shutil.get_terminal_size((100, 24)).columns, 110)
    click.echo(terminal.render(document, width=width, color=colour))
    click.echo(f"report: {page}")


def _say(text: str) -> None:
    click.echo(text, err=True)
