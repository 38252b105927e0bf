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
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from forensics import verbs_audit
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
    if not debug:
        warnings.simplefilter("ignore")  # of libraries about numbers that a log holds; they say nothing to its reader
        warnings.filterwarnings("default", message=".* cannot be loaded: ")  # but a plugin that is missing is our news
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a name that is no UTF-8, a terminal that is not
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


_batches_option = click.option(
    "--batches",
    "manifest",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file that maps steps to samples, batch ids, shards or sources, in place of what the run has.",
)


@main.command()
@click.argument("run")
@_outputs
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="The case; default <run>.case.json.")
@_metric_option
@_batches_option
@click.option(
    "--data",
    type=click.Path(exists=True, path_type=Path),
    help="The training data: compare the samples behind the spikes with random ones (off unless given).",
)
@click.option("--baseline", metavar="RUN", help="A known good run: where they part, and what that says about each cause.")
@click.option("--fail-on", type=click.Choice(["unhealthy"]), help="Exit with 3 where the verdict is this.")
@click.pass_context
def analyze(
    ctx: click.Context,
    run: str,
    out: Path | None,
    json_path: Path | None,
    md: Path | None,
    metrics: dict[str, str],
    baseline: str | None,
    data: Path | None,
    manifest: Path | None,
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
        _attach(chosen, manifest)
        known = pipeline.choose(pipeline.read_runs(baseline, metrics=metrics, progress=tick)) if baseline else None
        case = pipeline.analyze_run(chosen, command=["forensics", *sys.argv[1:]], baseline=known)
        document = _with_data(chosen, case, data) if data else case.to_json()
    document = _with_notes(document, case_path)
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

    def encoded(table: Any) -> bytes:
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="zstd")
        return buffer.getvalue()

    output.write_all((path, encoded(table)) for path, table in files)
    for r in runs:
        rows = ", ".join(f"{t.num_rows} {name}" for name, t in r.tables.items() if t.num_rows)
        click.echo(_steady(f"{r.id}: {rows or 'no rows'}"))


@main.command()
@click.argument("run")
@click.option("--step", type=int, required=True, help="An optimizer step, as the log labels it.")
@_batches_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def batch(run: str, step: int, manifest: Path | None, as_json: bool) -> None:
    """Print which samples were in the batch of a step of RUN, and how that is known.

    Recorded where a file lists it (a manifest, or ids in the log). Else rebuilt where the loader, its seed and the size of the data
    are known, and the log agrees with them; then with what that rests on. Else "unknown", and what is missing.
    """
    from forensics import pipeline
    from forensics.batches import links

    _without_pandas()
    chosen = pipeline.choose(pipeline.read_runs(run))
    _attach(chosen, manifest)
    found = links.answer(chosen, step)
    if as_json:
        click.echo(json.dumps(found))
        return
    click.echo(_steady(f"step {step}: {_listed(found['samples']) or 'unknown'}"))
    click.echo(_steady(f"shard {found['shard']}") if found["shard"] else "shard unknown")
    sure = f", {found['confidence']:.0%} sure" if found["how"] == "rebuilt" else ""
    click.echo(_steady(f"{found['how']}{sure}: {found['why']}"))
    for heading, key in (("rests on", "rests_on"), ("assumed", "assumed")):
        for line in found.get(key, ()):
            click.echo(_steady(f"  {heading} {line}"))


@main.command()
@click.argument("case", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_outputs
def render(case: Path, out: Path | None, md: Path | None, redact: bool, force: bool) -> None:
    """Write the page again from a saved CASE.json; the same case gives the same bytes."""
    from forensics import output

    document = output.saved_case(case)
    page = out or Path(f"{_name(case)}.html")
    for path in (page, md):
        if path is not None:
            output.check(path, force=force, replace_own=out is None)
    _write_all(document, page, None, md, redact=redact)
    click.echo(str(page))


@main.command()
@click.argument("case", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--add", "remarks", multiple=True, metavar="TEXT", help="A remark, shown under the answer.")
@click.option("--rule-out", "ruled_out", multiple=True, metavar="CAUSE", help="A cause that it was not (its id).")
@click.option("--because", "reasons", multiple=True, metavar="TEXT", help="Why; one for each --rule-out.")
@click.option("--reinstate", "reinstated", multiple=True, metavar="CAUSE", help="Weigh a ruled-out cause again.")
@click.option("--out", type=click.Path(path_type=Path), help="Another report, its case beside it; CASE.json stays as it is.")
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
    """Put your word into CASE.json and write its page again.

    A cause that you rule out stays visible, struck through, with your reason; the others are ranked again. Without --out
    the case is updated in place, and the report beside it is replaced.
    """
    from forensics import notes, output

    if len(ruled_out) != len(reasons):
        raise click.UsageError("each --rule-out needs a --because with the reason, in the same order")
    words = [notes.Note(text) for text in remarks]
    words += [notes.Note(why, cause) for cause, why in zip(ruled_out, reasons, strict=True)]
    words += [notes.Note("", cause, reinstated=True) for cause in reinstated]
    if not words:
        raise click.UsageError("nothing to note: give --add TEXT, or --rule-out CAUSE --because TEXT")
    page = out or case.with_name(f"{_name(case)}.html")
    written = out.with_suffix(".case.json") if out else case
    document = notes.noted(output.saved_case(case), words)
    for path in (page, written):
        output.check(path, force=force, replace_own=out is None)
    _write_all(document, page, written, None, redact=False)
    _show(document, page)


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


def _with_data(run: Any, case: Any, data: Path) -> dict[str, Any]:
    from forensics.batches import suspects

    return suspects.document(run, case, data)


def _span(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    if value is None:
        return None
    first, _, last = value.partition(":")
    if not first.isdigit() or not last.isdigit() or int(last) < int(first):
        raise click.BadParameter("give A:B, two steps as the log labels them, such as 400:432")
    return int(first), int(last)


@main.command()
@click.argument("run", required=False)
@click.option("--adapter", help="Your Python file with build(), batch(step), loss(model, batch); or `hf`.")
@click.option("--steps", callback=_span, metavar="A:B", help="Replay from step A on, and explain what is worst up to B.")
@click.option("--checkpoint", type=click.Path(), help="Begin from this one; default the last good one before the trouble.")
@click.option("--device", default="auto", show_default=True, help="cuda or cpu; auto takes CUDA where there is one.")
@click.option("--python", default=sys.executable, help="The interpreter of the training environment; default ours.")
@click.option("--budget", type=click.IntRange(min=1), help="Training steps to spend; default grows with the window.")
@click.option("--timeout", type=float, default=300, show_default=True, help="Seconds that one step may take.")
@click.option("--init", is_flag=True, help="Write a commented adapter to the path of --adapter (adapter.py), and stop.")
@_outputs
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="The case; default <run>.case.json.")
@click.pass_context
def replay(
    ctx: click.Context,
    run: str | None,
    adapter: str | None,
    steps: tuple[int, int] | None,
    checkpoint: str | None,
    device: str,
    python: str,
    budget: int | None,
    timeout: float,
    init: bool,
    out: Path | None,
    json_path: Path | None,
    md: Path | None,
    redact: bool,
    force: bool,
) -> None:
    """Run the steps around the trouble of RUN again, and find out by experiment what makes it.

    The adapter is the only file of yours that is ever run, in a process of its own. From the last good checkpoint the steps
    are reproduced, then batches and samples are bisected, and rate, optimizer and precision are changed one at a time.
    """
    from forensics import output, pipeline, progress
    from forensics.replay import conclude, template
    from forensics.replay.session import Options

    if init:
        output.check(path := Path(adapter or "adapter.py"), force=force)
        output.write(path, template.TEXT)
        click.echo(str(path))
        return
    if run is None or adapter is None:
        raise click.UsageError("give RUN and --adapter FILE.py; `forensics replay --init` writes one to fill in")
    _without_pandas()
    page = out or Path(f"{_stem(run)}.html")
    case_path = json_path or (page.with_suffix(".case.json") if out else Path(f"{_stem(run)}.case.json"))
    for path_, own in ((page, out is None), (case_path, json_path is None and out is None), (md, False)):
        if path_ is not None:
            output.check(path_, force=force, replace_own=own)
    options = Options(conclude.adapter_file(adapter), python, device, budget, steps, checkpoint, timeout)
    with progress.bar(ctx.obj["quiet"]) as tick:
        chosen = pipeline.choose(pipeline.read_runs(run, progress=tick))
        case, result = conclude.replayed(chosen, options, tick, command=["forensics", *sys.argv[1:]])
    document = _with_notes(case.to_json(), case_path)
    _write_all(document, page, case_path, md, redact=redact)
    _show(document, page)
    if result.failed:
        _say(f"forensics: replay stopped: {result.failed}")
        if result.traceback:
            output.write(page.with_suffix(".traceback.txt"), result.traceback)
            _say(f"  the traceback is in {page.with_suffix('.traceback.txt')}; the analysis without replay stands")
        ctx.exit(130 if result.interrupted else 1)


def _listed(samples: list[Any]) -> str:
    """'320 to 329' where numbers follow each other, else all of them."""
    if len(samples) > 3 and all(isinstance(x, int) for x in samples) and samples == list(range(samples[0], samples[-1] + 1)):
        return f"{samples[0]} to {samples[-1]}"
    return ", ".join(map(str, samples))


def _attach(run: Any, manifest: Path | None) -> None:
    if manifest is not None:
        from forensics.batches import manifest as manifests

        manifests.attach(run, manifest)


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


def _name(case: Path) -> str:
    return case.name.removesuffix(".json").removesuffix(".case")


def _stem(run: str) -> str:
    name = run.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1]
    name = name if name not in ("", ".", "..") else Path(run).resolve().name or "run"
    return os.fsdecode(os.fsencode(name)[:200])  # a folder's name may be so long that no ending fits behind it


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
    files: list[tuple[Path, str | bytes]] = [(page, html.render(document))]
    if case_path is not None:
        files.append((case_path, output.case_json(document)))
    if md is not None:
        files.append((md, markdown.render(document)))
    output.write_all(files)


def _with_notes(document: dict[str, Any], case_path: Path) -> dict[str, Any]:
    """The author's word in a case that is about to be replaced is kept."""
    from forensics import notes, output

    try:
        return notes.carried(document, output.saved_case(case_path)) if case_path.exists() else document
    except (ForensicsError, AttributeError, KeyError, TypeError):  # no case of ours, or one that somebody edited
        return document


def _show(document: dict[str, Any], page: Path) -> None:
    from reports import terminal

    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    width = min(shutil.get_terminal_size((100, 24)).columns, 110)
    click.echo(terminal.render(document, width=width, color=colour))
    click.echo(_steady(f"report: {page}"))


def _say(text: str) -> None:
    click.echo(_steady(text), err=True)


def _steady(text: str) -> str:
    """One line that may hold names and texts of a run: nothing in it steers the terminal, and no secret is in it."""
    from parsers.secrets import mask_text
    from reports.words import visible

    return visible(mask_text(text)).replace("\n", "\\n")


for _verb in (verbs_audit.audit, verbs_audit.compare):
    main.add_command(_verb)
