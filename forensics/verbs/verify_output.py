"""What `forensics tables --verify` says: a table on a terminal, lines in a pipe, and each difference."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from forensics.verbs.options import steady
from forensics.verify import SHOWN, Comparison, Difference


def show(comparisons: Sequence[Comparison]) -> None:
    if sys.stdout.isatty():
        _table(comparisons)
    for c in comparisons:
        if not sys.stdout.isatty():
            click.echo(steady(f"{c.path}: {_counts(c)} ({c.reader})"))
        elif not c.is_same:
            click.echo(steady(f"{c.path}: {_counts(c)}"))
        for difference in c.examples:
            click.echo(steady(f"  {_words(difference, c.reader)}"))
        if (more := c.differ + c.only_ours + c.only_theirs - len(c.examples)) > 0:
            click.echo(f"  and {more} more (the first {SHOWN} are listed)")
        if c.stopped:
            click.echo(steady(f"  {c.stopped}"))
    click.echo(_summary(comparisons))


def _counts(c: Comparison) -> str:
    parts = [f"{c.agree} values agree" if c.agree != 1 else "1 value agrees"]
    parts += [f"{c.differ} differ"] if c.differ else []
    parts += [f"{c.only_ours} only in forensics"] if c.only_ours else []
    parts += [f"{c.only_theirs} only in {c.reader.split()[0]}"] if c.only_theirs else []
    return ", ".join(parts)


def _words(d: Difference, reader: str) -> str:
    place = d.tag if d.step is None else f"{d.tag} at step {d.step}"
    other = reader.split()[0]
    if d.theirs is None:
        return f"{place}: {d.ours!r} in forensics, missing in {other}"
    if d.ours is None:
        return f"{place}: missing in forensics, {d.theirs!r} in {other}"
    return f"{place}: {d.ours!r} in forensics, {d.theirs!r} in {other}"


def _summary(comparisons: Sequence[Comparison]) -> str:
    files = "1 file" if len(comparisons) == 1 else f"{len(comparisons)} files"
    if bad := sum(not c.is_same for c in comparisons):
        return f"The readers disagree in {bad} of {files}."
    return f"Both readers agree on all {sum(c.agree for c in comparisons)} values in {files}."


def _table(comparisons: Sequence[Comparison]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("file", "second reader", box=None)
    for name in ("agree", "differ", "only forensics", "only second"):
        table.add_column(name, justify="right")
    for c in comparisons:
        counts = (c.agree, c.differ, c.only_ours, c.only_theirs)
        table.add_row(Text(steady(c.path), style="" if c.is_same else "bold"), c.reader, *map(str, counts))
    Console().print(table)
