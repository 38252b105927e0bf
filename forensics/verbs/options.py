"""What several verbs have in common: options, how they become one object, and how results are shown."""

from __future__ import annotations

import importlib
import os
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any

import click

from forensics import standard_input

UNHEALTHY = 3
FAIL_ON = {"unhealthy": ("unhealthy",), "inconclusive": ("unhealthy", "inconclusive")}  # asked: the verdicts that fail
REDACT = "Hide names of users and hosts, mail, IP and hardware addresses, and absolute paths."


def collected(**kinds: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes objects of a command's options: ``collected(wanted=Wanted)`` hands those that Wanted has fields for over as ``wanted``."""

    def of(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def called(*args: Any, **given: Any) -> Any:
            made = {name: kind(**{f.name: given.pop(f.name) for f in fields(kind) if f.name in given}) for name, kind in kinds.items()}
            return command(*args, **given, **made)

        return called

    return of


@dataclass(frozen=True)
class Wanted:
    """Which outputs a command shall write, and how."""

    out: Path | None = None
    json_path: Path | None = None
    md: Path | None = None
    redact: bool = False
    force: bool = False
    format: str | None = None  # instead of the page


def named_file(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """An output that is asked for has a name, and is a file here: --out "" is a mistake in a script."""
    if value is not None and not value.name:
        raise click.BadParameter("give the name of a file to write")
    if value is not None and re.match(r"[A-Za-z][\w+.-]+:/", str(value)):  # a path keeps one slash of "://"
        raise click.BadParameter("give a local file; only `audit` writes to a URL")
    return value


def outputs(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--force", is_flag=True, help="Replace existing outputs."),
        click.option("--redact", is_flag=True, help=REDACT),
        click.option("--md", type=click.Path(path_type=Path), callback=named_file, help="Write a Markdown summary here, too."),
        click.option("--out", type=click.Path(path_type=Path), callback=named_file, help="The report; default <run>.html in this folder."),
    ):
        command = option(command)
    return command


def address(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.startswith(("http://", "https://")):
        raise click.BadParameter("give an address that begins with http:// or https://")
    return value


FORMATS = {"sarif": "sarif", "junit": "junit", "md": "markdown", "slack": "slack"}  # asked: the module of reports that draws it
format_option = click.option(
    "--format", type=click.Choice(list(FORMATS)), help="Write this instead of the page: to standard output, or to --out."
)


def drawn_as(format: str, document: dict[str, Any]) -> str:
    """The case in one of the FORMATS."""
    return str(importlib.import_module(f"reports.{FORMATS[format]}").render(document))


def _metrics(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    pairs = [v.partition("=") for v in values]
    if any(not name or not tag for name, _, tag in pairs):
        raise click.BadParameter("give NAME=TAG, such as loss.train=my/own/tag")
    return {name: tag for name, _, tag in pairs}


metric_option = click.option(
    "--metric", "metrics", multiple=True, metavar="NAME=TAG", callback=_metrics, help="Give a tag its meaning, e.g. loss.train=my/own/tag."
)


run_config_option = click.option(
    "--no-run-config", "run_config", is_flag=True, flag_value=False, default=True, help="Ignore a forensics.toml in the run folder."
)


case_option = click.option(
    "--json", "json_path", type=click.Path(path_type=Path), callback=named_file, help="The case; default <run>.case.json."
)


run_option = click.option(
    "--run", "name", metavar="NAME", help="Of several runs in RUN this one: its id, or what it alone begins or ends with."
)


fail_option = click.option("--fail-on", type=click.Choice(list(FAIL_ON)), help="Exit with 3 if the verdict on any run is this or worse.")


open_option = click.option("--open", "open_page", is_flag=True, help="Open the page in the browser.")


batches_option = click.option(
    "--batches",
    "manifest",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file that maps steps to samples, batch ids, shards or sources; replaces what the run recorded.",
)


data_option = click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="The training data: compare the samples behind the spikes with random ones (off unless given).",
)

show_option = click.option(
    "--show-data", "show", is_flag=True, help="Show samples of the suspect batches (--data) beside ordinary ones. Not with --redact."
)


def may_show(*, show: bool, data: Path | None, redact: bool) -> None:
    """Raises UsageError where the content of training data was asked for, and may not or cannot be shown."""
    if show and redact:
        raise click.UsageError("--show-data puts training data on the page, --redact is for pages that others will see: give one of them")
    if show and data is None:
        raise click.UsageError("--show-data needs --data PATH, the training data")


def attach(run: Any, manifest: Path | None) -> None:
    if manifest is not None:
        from forensics.batches import batch_manifest as manifests

        manifests.attach(run, manifest)


def name_of(case: Path) -> str:
    return case.name.removesuffix(".json").removesuffix(".case")


def stem_of(run: str, picked: str | None = None) -> str:
    """What default names of outputs begin with; ``picked``: the run of several that was asked for by name."""
    from forensics import services

    run = standard_input.STEM if run == standard_input.NAME else run
    name = run.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1]
    name = name.replace(":", "-") if services.of(run) else name  # mlflow: alone
    name = name if name not in ("", ".", "..") else Path(run).resolve().name or "run"
    name = f"{name}-{picked.strip('/').replace('/', '__')}" if picked else name
    return os.fsdecode(os.fsencode(name)[:200])  # a folder's name may be so long that no ending fits behind it


def show(document: dict[str, Any], page: Path) -> None:
    from reports import terminal

    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    width = min(shutil.get_terminal_size((100, 24)).columns, 110)
    click.echo(terminal.render(document, width=width, color=colour))
    click.echo(steady(f"report: {page}"))


def browse(page: Path | str) -> None:
    """Opens a page that was written here."""
    import webbrowser

    try:
        opened = webbrowser.open(Path(page).absolute().as_uri())
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        notice(f"no browser could be opened: the page is {page}")


def say(text: str) -> None:
    click.echo(steady(text), err=True)


def notice(text: str) -> None:
    """Says what is good to know, and nothing with --quiet."""
    ctx = click.get_current_context(silent=True)
    if not (ctx is not None and isinstance(ctx.obj, dict) and ctx.obj.get("quiet")):
        say(text)


def steady(text: str) -> str:
    """One line that may hold names and texts of a run: nothing in it steers the terminal, no secret is in it, and with
    --redact no name."""
    from forensics.verbs.redact_output import hidden
    from parsers.secrets import mask_text
    from reports.text_format import visible

    return visible(hidden(mask_text(text))).replace("\n", "\\n")
