"""A run that was read, for a notebook's cell: what was logged, from which files, and what could not be read. No judgement, no script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup, escape

from reports import text_format

SHOWN = 30  # rows of a table; the frames have all


def render(run: dict[str, Any]) -> str:
    """``run`` has the keys of ``forensics.Run.outline``. Everything in it is text, whatever it holds."""
    head = f"{run['id']}: {', '.join(f'{n:,} {name}' for name, n in run['tables'].items()) or 'no rows'}"
    parts = [Markup("<p><strong>{}</strong><br>{}</p>").format(_text(head), _text(run["path"]))]
    metrics = ((m["name"], m["tag"], m["points"], f"{m['steps'][0]} to {m['steps'][1]}", *m["values"]) for m in run["metrics"])
    parts.append(_table(("metric", "as logged", "values", "steps", "first", "last"), metrics))
    parts.append(_table(("file", "format", "records"), ((f["path"], f["format"], f["records"]) for f in run["files"])))
    parts.append(_table(("could not be read", "at", "what"), ((g["path"], g["at"], g["what"]) for g in run["gaps"])))
    return Markup("<div>{}</div>").format(Markup("").join(parts))


def _table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> Markup:
    known = list(rows)
    if not known:
        return Markup("")
    more = [(f"and {len(known) - SHOWN} more",)] if len(known) > SHOWN else []
    body = Markup("").join(_row("td", cells) for cells in (*known[:SHOWN], *more))
    return Markup("<table><thead>{}</thead><tbody>{}</tbody></table>").format(_row("th", heads), body)


def _row(cell: str, cells: Sequence[Any]) -> Markup:
    each = (Markup("<{0}>{1}</{0}>").format(Markup(cell), _text(c)) for c in cells)
    return Markup("<tr>{}</tr>").format(Markup("").join(each))


def _text(value: Any) -> Markup:
    return escape(text_format.visible(text_format.number(value) if isinstance(value, (int, float)) else value))
