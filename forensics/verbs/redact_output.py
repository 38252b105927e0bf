"""`--redact` in the verbs: what is known of names while a command runs, and what it prints and calls its files."""

from __future__ import annotations

from collections.abc import Iterable
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


def learn(known: Pseudonyms, runs: Iterable[Any], given: Iterable[str | None] = ()) -> None:
    """Collects the names that runs give away, and those of the paths that were ``given``."""
    from forensics import redact

    for path in given:
        if path is not None:  # before the runs below it, which stay readable relative to it
            redact.root(path, known)
    for run in runs:
        redact.learn_run(run, known)
        redact.root(run.path, known)
