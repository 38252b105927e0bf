"""Where the outputs of a verb go: names that nobody else's file has, of this very run, and never a file of the run."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from forensics.errors import ForensicsError
from forensics.verbs.options import Wanted, drawn_as, notice, show, steady, stem_of

if TYPE_CHECKING:
    from forensics.redact import Pseudonyms


STDOUT = Path("-")
MOST_NAMESAKES = 100  # runs of one folder name whose cases are looked through


@dataclass(frozen=True)
class Places:
    """Where the page, the case and the summary of a run go; ``default``: those whose names nobody gave; ``format``: what is written in place
    of the page, there or to STDOUT."""

    page: Path
    case: Path | None = None
    md: Path | None = None
    default: frozenset[str] = frozenset()
    format: str | None = None

    def named(self) -> dict[str, Path]:
        found = {"page": self.page, "case": self.case, "md": self.md}
        return {what: path for what, path in found.items() if path is not None and path != STDOUT}


def places(run: str, wanted: Wanted, picked: str | None = None, *, again: bool = False) -> Places:
    """Where the outputs go, once it is sure that they may be written, whatever run it will be. ``again``: a report of before may stand under
    the names that were given, too; what becomes of it is decided as for default ones."""
    if wanted.format:
        return allowed(Places(wanted.out or STDOUT, wanted.json_path, wanted.md, format=wanted.format), force=wanted.force)
    stem = stem_of(run, picked)
    page = wanted.out or Path(f"{stem}.html")
    case = wanted.json_path or (page.with_suffix(".case.json") if wanted.out else Path(f"{stem}.case.json"))
    default = {what for what, given in (("page", wanted.out), ("case", wanted.out or wanted.json_path)) if again or given is None}
    return allowed(Places(page, case, wanted.md, frozenset(default)), force=wanted.force)


def allowed(found: Places, *, force: bool) -> Places:
    """The places, each another file that is not there yet. A default name may be that of a report, which is looked at later."""
    from forensics import output
    from forensics.run import identity

    if STDOUT in (found.case, found.md) or (found.page == STDOUT and found.format is None):
        raise click.UsageError("only what --format draws goes to standard output, with --out -")
    for what, path in found.named().items():
        if not (what in found.default and identity.of_report(path) is not None):
            output.check(path, force=force)
    distinct = {os.path.realpath(p) for p in found.named().values()}
    if len(distinct) < len(found.named()):
        raise click.UsageError("two outputs have the same name")
    return found


def own(found: Places, mine: list[str], *, force: bool) -> Places:
    """The places of this very run: a default name that the report of another run has gets a number, and that is said."""
    from forensics.run import identity

    def taken(path: Path) -> bool:
        return os.path.lexists(path) and not identity.same(identity.of_report(path), mine)

    if force or not any(taken(found.named()[what]) for what in found.default):
        return found
    for n in itertools.count(2):
        numbered: dict[str, Any] = {what: _numbered(found.named()[what], n) for what in found.default}
        other = replace(found, **numbered)
        if not any(taken(other.named()[what]) for what in found.default):
            notice(f"{found.page} and its case are of another run: they stay, and this report is {other.page}")
            return other
    raise AssertionError


def earlier_case(found: Places, mine: list[str]) -> dict[str, Any] | None:
    """The case of this very run that stands where the new one will go; None where there is none, or somebody edited it."""
    from forensics import output
    from forensics.run import identity

    if found.case is None:
        return None
    for n in range(1, MOST_NAMESAKES):
        path = found.case if n == 1 else _numbered(found.case, n)
        if identity.same(identity.of_report(path), mine):
            try:
                return output.saved_case(path)
            except ForensicsError:
                return None
        if "case" not in found.default:
            break
    return None


def _numbered(path: Path, n: int) -> Path:
    stem, dot, ending = path.name.partition(".case.json") if path.name.endswith(".case.json") else path.name.rpartition(".")
    return path.with_name(f"{stem}-{n}{dot}{ending}")


def renamed(found: Places, known: Pseudonyms, *, force: bool) -> Places:
    """The places with default names that tell no name of the run either."""
    from forensics import redact

    changed: dict[str, Any] = {what: (old := found.named()[what]).with_name(redact.file_name(old.name, known)) for what in found.default}
    return allowed(replace(found, **changed), force=force)


def publish(document: dict[str, Any], found: Places, runs: Iterable[Any], files: Iterable[Path | str | None], **how: Any) -> Places:
    """Writes the outputs of a run as ``written`` does, and shows its summary; -> where they are."""
    found, document = written(document, found, runs, files, **how)
    tell(document, found)
    return found


def written(
    document: dict[str, Any],
    found: Places,
    runs: Iterable[Any],
    files: Iterable[Path | str | None],
    *,
    known: Pseudonyms | None,
    force: bool,
    shown: dict[str, Any] | None = None,
) -> tuple[Places, dict[str, Any]]:
    """Writes the outputs of a run, with the author's word of its earlier case, and without names where these are ``known``
    (`--redact`); -> where they are, and the case as it was written. ``shown``: samples for the page alone (`--show-data`)."""
    from forensics import output, redact

    if known is not None:
        found = renamed(found, known, force=force)
    with output.locked(found.page.absolute().parent):
        found = own(allowed(found, force=force), document["run"]["identity"], force=force)  # another command may have been here
        keep_inputs(found, runs, files)
        if found.case is not None:
            document = with_notes(document, found.case)
        if known is not None:
            document = redact.redacted(document, known)
        write_all(document, found, shown if known is None else None)
    return found, document


def tell(document: dict[str, Any], found: Places) -> None:
    """On standard output the summary with the place of the page; what was asked for in its place; or nothing but that place."""
    if found.format is None:
        show(document, found.page)
    elif found.page == STDOUT:
        click.echo(drawn_as(found.format, document), nl=False)
    else:
        click.echo(steady(f"report: {found.page}"))


def keep_inputs(found: Places, runs: Iterable[Any], files: Iterable[Path | str | None] = ()) -> None:
    """Raises ForensicsError where an output is a file of the runs, or one of the ``files`` that were read, also with --force."""
    from forensics.run import identity

    read = {os.path.realpath(f) for f in files if f is not None}
    runs = list(runs)
    for path in found.named().values():
        if os.path.realpath(path) in read or identity.is_input(path, runs):
            raise ForensicsError(f"{path} is what was read: left as it is", "Give another name with --out.")


def write_all(document: dict[str, Any], found: Places, shown: dict[str, Any] | None = None) -> None:
    from forensics import output
    from reports import html, markdown

    files: list[tuple[Path, str | bytes]] = []
    if found.page != STDOUT:
        files.append((found.page, drawn_as(found.format, document) if found.format else html.render(document, shown)))
    if found.case is not None:
        files.append((found.case, output.case_json(document)))
    if found.md is not None:
        files.append((found.md, markdown.render(document)))
    output.write_all(files)


def with_notes(document: dict[str, Any], case_path: Path) -> dict[str, Any]:
    """The author's word in a case of the same run that is about to be replaced is kept."""
    from forensics import output
    from forensics.case_parts import notes
    from forensics.run import identity

    if not identity.same(identity.of_report(case_path), document["run"]["identity"]):
        return document
    try:
        return notes.carried(document, output.saved_case(case_path))
    except (ForensicsError, AttributeError, KeyError, TypeError):  # one that somebody edited
        return document
