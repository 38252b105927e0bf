"""`--redact` in the verbs: what is known of names while a command runs, and what it prints and calls its files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from forensics.redact import Pseudonyms


def begin(ctx: click.Context) -> Pseudonyms:
    """From here on nothing that the command prints tells a name, errors and tracebacks included."""
    from forensics.redact import Pseudonyms

    known = Pseudonyms()
    ctx.ensure_object(dict)["known"] = known
    return known


def hidden(text: str) -> str:
    """A text without names, where --redact was given."""
    ctx = click.get_current_context(silent=True)
    known = ctx.obj.get("known") if ctx is not None and isinstance(ctx.obj, dict) else None
    if known is None:
        return text
    from forensics import redact

    redact.listen([text], known)
    return redact.clean(text, known)


def renamed(known: Pseudonyms, runs: Iterable[Any], *files: tuple[Path, bool], force: bool) -> tuple[Path, ...]:
    """Learns the names of the runs, and gives the files their names: one that the command chose by itself tells none either."""
    from forensics import output, redact

    for run in runs:
        if run is not None:
            redact.learn_run(run, known)
            redact.root(run.path, known)
    found = tuple(named(path, known) if own else path for path, own in files)
    for new, (old, own) in zip(found, files, strict=True):
        if new != old:
            output.check(new, force=force, replace_own=own)
    return found


def named(path: Path, known: Pseudonyms) -> Path:
    from forensics import redact

    return path.with_name(redact.file_name(path.name, known))


def redacted(document: dict[str, Any], known: Pseudonyms) -> dict[str, Any]:
    from forensics import redact

    return redact.redacted(document, known)
