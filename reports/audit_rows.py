"""The rows of an audit's table: one line of text each, with a small curve of the loss.

Rows are plain cells without closing tags, since a hundred thousand of them have to fit into a page: no cell has an attribute, and columns
that are empty for all runs are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from markupsafe import Markup, escape

from reports import text_format

ROOM = 4_600_000  # bytes of rows; beyond it healthy runs lose their curves, then all that are left
LONGEST, SENTENCE = 160, re.compile(r"\.\s+(?=[A-Z\u201c])")  # characters of what happened; where a sentence ends
LEAST = 0.01  # GPU-hours that are shown as a number
STEP, TOP = 3, 16  # of the small curve: pixels from point to point, height
OPEN = "unknown"  # the id of what is no cause on our list
RANK = {"unhealthy": 0, "inconclusive": 1, "healthy": 2}
LOSSES = {"lost_repeated": "repeated work", "lost_hang": "hang", "lost_diverged": "after divergence", "lost_at_start": "dead on arrival"}
ENDINGS = {"exception": "exception", "interrupt": "stopped by hand", "scheduler": "stopped by the scheduler",
           "signal": "killed by a signal", "hardware": "hardware fault", "disk": "disk full", "hang": "hang", "cut": "cut off"}  # fmt: skip
Row = dict[str, Any]
Titles = dict[str, str]


@dataclass(frozen=True)
class Column:
    """``kind``: n (numbers, right-aligned), curve, wide or name (text that may wrap) or one line; ``always``: stands also where no run has
    anything in it."""

    name: str
    kind: str
    cell: Callable[[Row, Titles], Any]
    always: bool = False


def _plain(key: str) -> Callable[[Row, Titles], Any]:
    return lambda r, _: r.get(key)


def _verdict(r: Row, _: Titles) -> str:
    return str(r["verdict"]) + (", known" if r["known"] else "") + (", not analyzed" if r["error"] else "")


def _cause(r: Row, titles: Titles) -> Any:
    """Of an open one also the candidate that leads."""
    if r["verdict"] != "unhealthy":
        return None
    title, near = titles.get(r["top_cause"], r["top_cause"]), r.get("candidate")
    return f"{title}: {titles.get(near, near)}" if r["top_cause"] == OPEN and near not in (None, OPEN) else title


def _probability(r: Row, titles: Titles) -> Any:
    known = _cause(r, titles) and r.get("candidate", r["top_cause"]) != OPEN and r["probability"] is not None
    return text_format.percent(r["probability"]) if known else None


def happened(r: Row) -> str | None:
    """The line that ended it, where it died; else the answer's first sentence, where it is not that all is well."""
    if r["error"] or r.get("error_line"):
        return text_format.cut(text_format.one_line(r["error"] or r["error_line"]), LONGEST)
    return None if r["verdict"] == "healthy" else text_format.cut(SENTENCE.split(str(r["answer"] or ""), maxsplit=1)[0], LONGEST)


def _spikes(r: Row, _: Titles) -> Any:
    told = [str(r[f"spikes_{k}"] or 0) for k in ("fast", "slow", "non_recovering")]
    return None if told == ["0", "0", "0"] else "/".join(told)


def _loss(r: Row, _: Titles) -> Any:
    return None if r["loss"] is None else text_format.number(r["loss"]) if math.isfinite(r["loss"]) else "NaN"


def _hours(key: str) -> Callable[[Row, Titles], Any]:
    return lambda r, _: hours(r[key]) if r.get(key) else None


def hours(x: float | None) -> str:
    """GPU-hours: whole ones where there are many; nothing where they are not known, and what is there is never 0."""
    if x is None:
        return ""
    return f"<{LEAST}" if 0 < x < LEAST else text_format.number(round(x, 0 if x >= 100 else 1 if x >= 10 else 2))


def _lost_to(r: Row, _: Titles) -> str:
    return ", ".join(name for kind, name in LOSSES.items() if r.get(kind))


def _again(r: Row, _: Titles) -> Any:
    """Of a run that went wrong also why nobody can tell."""
    if r["verdict"] == "healthy" and not str(r.get("rerun")).startswith("yes"):
        return None
    reasons = (part.partition(": ") for part in str(r.get("why_null") or "").split("; "))
    return r.get("rerun") or next((f"not known: {reason}" for columns, _, reason in reasons if "rerun" in columns.split(", ")), None)


COLUMNS = (
    Column("run", "", lambda r, _: r["id"], True), Column("loss", "curve", _plain("loss"), True), Column("verdict", "", _verdict, True),
    Column("what happened", "wide", lambda r, _: happened(r)), Column("cause", "wide", _cause, True), Column("probability", "n", _probability),
    Column("began", "", lambda r, _: str(r.get("started") or "")[:10]), Column("owner", "name", _plain("owner")), Column("host", "name", _plain("host")),
    Column("run again", "wide", _again), Column("ending", "", lambda r, _: ended(r.get("ending"))),
    Column("first bad step", "n", _plain("first_bad_step")), Column("steps", "n", _plain("steps")), Column("last loss", "n", _loss),
    Column("GPU-hours lost", "n", _hours("lost_gpu_hours")), Column("lost to", "", _lost_to), Column("spikes", "n", _spikes),
    Column("status", "", _plain("status")), Column("framework", "", _plain("framework")), Column("project", "name", _plain("project")),
    Column("job", "", _plain("job_id")), Column("last good checkpoint", "", _plain("last_good_checkpoint")), Column("folder", "", _plain("folder")),
    Column("GPUs", "n", lambda r, _: "none" if r.get("gpus") == 0 else r.get("gpus")), Column("GPU-hours", "n", _hours("gpu_hours")),
    Column("shard", "", _plain("shard")),
)  # fmt: skip


def ended(kind: Any) -> str | None:
    """The ending in words; nothing for what came to its own end, goes on, or says nothing."""
    return None if kind in (None, "finished", "running", "unknown") else ENDINGS.get(str(kind), str(kind).replace("_", " "))


def rank(row: Row) -> tuple[Any, ...]:
    """Worst first."""
    return RANK.get(row["verdict"], 1), not row["error"], -(row["spikes_non_recovering"] or 0), -(row["grave"] or 0), row["id"]


def lines(rows: Iterable[Row], curves: Sequence[bytes], titles: Titles) -> tuple[list[Column], list[Markup]]:
    """(the columns that stand, a line for each run). The rows are passed through once."""
    read = [(RANK.get(r["verdict"], 1), _head(r), [c.cell(r, titles) for c in COLUMNS]) for r in rows]
    shown = [i for i, c in enumerate(COLUMNS) if c.always or any(values[i] not in (None, "") for _, _, values in read)]
    written: dict[Any, str] = {None: ""}  # most cells of a large audit say what others say
    cells = [(head, _tail([values[i] for i in shown[2:]], written)) for _, head, values in read]
    drawn = [spark(c) for c in curves]
    spent = sum(len(head) + len(tail) for head, tail in cells)
    keep = set()
    for i in sorted(range(len(read)), key=lambda i: (read[i][0], i)):
        spent += len(drawn[i])
        if spent > ROOM:
            break
        keep.add(i)
    return [COLUMNS[i] for i in shown], [Markup(f"{head}{drawn[i] if i in keep else ''}{tail}") for i, (head, tail) in enumerate(cells)]


def _head(r: Row) -> str:
    """The row before its curve. End tags of rows and cells may be left out in HTML."""
    name = escape(text_format.one_line(r["id"]))
    first = f'<a href="{escape(quote(r["page"]))}">{name}</a>' if r["page"] else str(name)
    kind = {"unhealthy": "u", "healthy": "h"}.get(str(r["verdict"]), "i")
    return f'<tr class="{kind}"><td>{first}<td>'


def _tail(values: Sequence[Any], written: dict[Any, str]) -> str:
    """The row behind its curve."""
    for value in values:
        if value not in written:
            written[value] = str(escape(text_format.one_line(value)))
    return "".join(f"<td>{written[value]}" for value in values).rstrip()


def spark(curve: Sequence[int]) -> str:
    """The small curve as one path: x in steps of `STEP`, y down from 0 to `TOP`; 255 (not finite) leaves a gap."""
    out, last = [], None
    for i, v in enumerate(curve):
        if v > 99:
            last = None
            continue
        y = round((99 - v) * TOP / 99)
        if last is None:
            out.append(f"M{i * STEP} {y}l0 0")
        else:
            dx, dy = (i - last[0]) * STEP, y - last[1]
            out.append(f" {dx}{'' if dy < 0 else ' '}{dy}")
        last = (i, y)
    return f'<svg><path d="{"".join(out)}"/></svg>' if out else ""
