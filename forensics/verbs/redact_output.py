"""`--redact` in the verbs: what is known of names while a command runs, and what it prints and calls its files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from forensics.redact import Pseudonyms
    from forensics.verbs.output_paths import Places


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


def learn(known: Pseudonyms, runs: Iterable[Any]) -> None:
    """Collects the names that runs give away."""
    from forensics import redact

    for run in runs:
        if run is not None:
            redact.learn_run(run, known)
            redact.root(run.path, known)


def renamed(found: Places, known: Pseudonyms, *, force: bool) -> Places:
    """The places with default names that tell no name of the run either."""
    from forensics.verbs.output_paths import allowed

    changed: dict[str, Any] = {what: named(found.named()[what], known) for what in found.default}
    return allowed(replace(found, **changed), force=force)


def named(path: Path, known: Pseudonyms) -> Path:
    from forensics import redact

    return path.with_name(redact.file_name(path.name, known))


def redacted(document: dict[str, Any], known: Pseudonyms) -> dict[str, Any]:
    from forensics import redact

    return redact.redacted(document, known)
