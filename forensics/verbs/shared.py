"""What several verbs have in common: options, the names of outputs, and how results are shown."""

from __future__ import annotations

import itertools
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from forensics.errors import ForensicsError

UNHEALTHY = 3


def outputs(command: Callable[..., Any]) -> Callable[..., Any]:
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


metric_option = click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME=TAG",
    callback=_metrics,
    help="What a tag of yours means, e.g. loss.train=my/own/tag.",
)


run_config_option = click.option(
    "--no-run-config", "run_config", is_flag=True, flag_value=False, default=True, help="Leave out a forensics.toml that came with the run."
)


batches_option = click.option(
    "--batches",
    "manifest",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file that maps steps to samples, batch ids, shards or sources, in place of what the run has.",
)


def attach(run: Any, manifest: Path | None) -> None:
    if manifest is not None:
        from forensics.batches import manifest as manifests

        manifests.attach(run, manifest)


def without_pandas() -> None:
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


def name_of(case: Path) -> str:
    return case.name.removesuffix(".json").removesuffix(".case")


def stem_of(run: str) -> str:
    name = run.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1]
    name = name if name not in ("", ".", "..") else Path(run).resolve().name or "run"
    return os.fsdecode(os.fsencode(name)[:200])  # a folder's name may be so long that no ending fits behind it


@dataclass(frozen=True)
class Places:
    """Where the page, the case and the summary of a run go; ``default``: those whose names nobody gave."""

    page: Path
    case: Path | None = None
    md: Path | None = None
    default: frozenset[str] = frozenset()

    def named(self) -> dict[str, Path]:
        found = {"page": self.page, "case": self.case, "md": self.md}
        return {what: path for what, path in found.items() if path is not None}


def places(run: str, out: Path | None, json_path: Path | None, md: Path | None, *, force: bool) -> Places:
    """Where the outputs go, once it is sure that they may be written, whatever run it will be."""
    stem = stem_of(run)
    page = out or Path(f"{stem}.html")
    case = json_path or (page.with_suffix(".case.json") if out else Path(f"{stem}.case.json"))
    default = {what for what, given in (("page", out), ("case", out or json_path)) if given is None}
    return allowed(Places(page, case, md, frozenset(default)), force=force)


def allowed(found: Places, *, force: bool) -> Places:
    """The places, each another file that is not there yet. A default name may be that of a report, which is looked at later."""
    from forensics import identity, output

    for what, path in found.named().items():
        if not (what in found.default and identity.of_report(path) is not None):
            output.check(path, force=force)
    distinct = {os.path.realpath(p) for p in found.named().values()}
    if len(distinct) < len(found.named()):
        raise click.UsageError("two outputs have the same name")
    return found


def own(found: Places, mine: list[str], *, force: bool) -> Places:
    """The places of this very run: a default name that the report of another run has gets a number, and that is said."""
    from forensics import identity

    def taken(path: Path) -> bool:
        return os.path.lexists(path) and not identity.same(identity.of_report(path), mine)

    if force or not any(taken(found.named()[what]) for what in found.default):
        return found
    for n in itertools.count(2):
        numbered: dict[str, Any] = {what: _numbered(found.named()[what], n) for what in found.default}
        other = replace(found, **numbered)
        if not any(taken(other.named()[what]) for what in found.default):
            say(f"{found.page} and its case are of another run: they stay, and this report is {other.page}")
            return other
    raise AssertionError


def _numbered(path: Path, n: int) -> Path:
    stem, dot, ending = path.name.partition(".case.json") if path.name.endswith(".case.json") else path.name.rpartition(".")
    return path.with_name(f"{stem}-{n}{dot}{ending}")


def publish(document: dict[str, Any], found: Places, runs: list[Any], *, redact: bool, force: bool) -> Places:
    """Writes the outputs of a run, with the author's word of its earlier case; -> where they are."""
    from forensics import output

    with output.locked(found.page.absolute().parent):
        found = own(found, document["run"]["identity"], force=force)
        keep_inputs(found, runs)
        if found.case is not None:
            document = with_notes(document, found.case)
        write_all(document, found, redact=redact)
    show(document, found.page)
    return found


def keep_inputs(found: Places, runs: list[Any]) -> None:
    """Raises ForensicsError where an output is a file of the runs, also with --force."""
    from forensics import identity

    read = identity.inputs(runs)
    for path in found.named().values():
        if path.resolve() in read:
            raise ForensicsError(f"{path} is a file of the run: left as it is", "Give another name with --out.")


def write_all(document: dict[str, Any], found: Places, *, redact: bool) -> None:
    from forensics import output
    from reports import html, markdown

    if redact:
        from forensics.redact import redacted

        document = redacted(document)
    files: list[tuple[Path, str | bytes]] = [(found.page, html.render(document))]
    if found.case is not None:
        files.append((found.case, output.case_json(document)))
    if found.md is not None:
        files.append((found.md, markdown.render(document)))
    output.write_all(files)


def with_notes(document: dict[str, Any], case_path: Path) -> dict[str, Any]:
    """The author's word in a case of the same run that is about to be replaced is kept."""
    from forensics import identity, notes, output

    if not identity.same(identity.of_report(case_path), document["run"]["identity"]):
        return document
    try:
        return notes.carried(document, output.saved_case(case_path))
    except (ForensicsError, AttributeError, KeyError, TypeError):  # one that somebody edited
        return document


def show(document: dict[str, Any], page: Path) -> None:
    from reports import terminal

    colour = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    width = min(shutil.get_terminal_size((100, 24)).columns, 110)
    click.echo(terminal.render(document, width=width, color=colour))
    click.echo(steady(f"report: {page}"))


def say(text: str) -> None:
    click.echo(steady(text), err=True)


def steady(text: str) -> str:
    """One line that may hold names and texts of a run: nothing in it steers the terminal, and no secret is in it."""
    from parsers.secrets import mask_text
    from reports.words import visible

    return visible(mask_text(text)).replace("\n", "\\n")
