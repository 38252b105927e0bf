"""The case in a terminal: about twenty lines with a small chart of the loss.

Control characters of the case are spelled out before anything is printed, so that a log cannot steer the terminal.
"""

from __future__ import annotations

import math
import textwrap
from typing import Any

from reports import do_next, first_rows, first_screen, replay_section, text_format
from reports.clues import said_once, weight
from reports.schema import complete
from reports.suspects import how_to_read
from reports.text_format import one_line

Case = dict[str, Any]
COLORS = {"unhealthy": "31;1", "healthy": "32;1", "inconclusive": "33;1", "dim": "2", "bold": "1", "+": "34", "\u2212": "33"}
ROWS = 4
LINES = 25
COMMAND = "forensics "  # a line with a command is for pasting: never cut
SHORT = {
    "Suspects": "Suspect",
    "In the data": "Data",
    "Go back to": "Go back",
    "Lies here": "Here",
    "Last lines": "Log ends",
}  # in so many columns
NAME = 9  # columns for the names on the left
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # bits of a braille character, by row and column


def render(case: Case, width: int = 100, color: bool = False) -> str:
    """The summary, `width` columns wide but for commands; `color` adds ANSI colours."""
    full, width = complete(case), max(40, width)

    def paint(text: str, role: str) -> str:
        return f"\x1b[{COLORS[role]}m{text}\x1b[0m" if color and role in COLORS else text

    verdict = one_line(full["verdict"])
    answer = f"{verdict.upper()}: {one_line(first_screen.headline(full))}"
    lines = [paint(text_format.cut(_head(full), width), "dim")]
    for i, line in enumerate(textwrap.wrap(answer, width, max_lines=4, placeholder=" \u2026")):
        lines.append(paint(line, "bold" if i else verdict))
    lines += chart(full, width)
    rows = _rows(full)
    while len(lines) + len(rows) > LINES and (
        clues := [i for i, (name, text) in enumerate(rows) if not name and text.lstrip()[:1] in COLORS]
    ):
        del rows[clues[-1]]  # the ledger has them all
    spare = LINES - len(lines) - len(rows)
    for name, text in rows:
        role = "bold" if name == "Cause" else "" if name else text.lstrip()[:1]
        shown = [text.replace("`", "")]
        if COMMAND not in text:
            most = _most(name, text, spare)
            indent = "   " if text[:1].isdigit() else ""
            shown = _wrap(shown[0], width - NAME, most, indent)
            spare -= len(shown) - 1
        lines += [paint(f"{name if i == 0 else '':{NAME}}", "dim") + paint(s, role) for i, s in enumerate(shown)]
    return "\n".join(lines) + "\n"


def _most(name: str, text: str, spare: int) -> int:
    """Lines that a row may take: what to do, and what the log says, are told in full where there is room."""
    if name == "Beware":
        return 4
    return 1 + min(max(spare, 0), 3 if name == "Log says" else int(text[:1].isdigit()))


def _head(case: Case) -> str:
    run, (word, found) = case["run"], first_screen.status(case)
    parts = [one_line(run.get("id") or "run"), one_line(run.get("status") or "unknown"), text_format.reach(run)]
    attempts = len(run["attempts"])
    known = f"{word.lower()}{' ' if found.startswith('in ') else ', '}{found}"
    return ", ".join(filter(None, [*parts, f"{attempts} attempts" if attempts > 1 else ""])) + f" \u00b7 {known}"


def _rows(case: Case) -> list[tuple[str, str]]:
    """(name, text) of every line below the chart; the clues have no name and begin with their sign."""
    told = dict(first_rows.rows(case))
    rows = [("Beware", one_line(t)) for t in told.pop("Beware", [])]
    rows.append(("When", "; ".join(filter(None, first_screen.when(case)))))
    leader = first_screen.top(case)
    if leader:
        proven = replay_section.logs_alone(case) is not None
        sure = f"proven by replay, {text_format.percent(leader['probability'])}" if proven else first_screen.why(leader)
        rows.append(("Cause", f"{one_line(first_screen.named(case))} ({sure})"))
        for c in sorted(filter(weight, said_once(leader["clues"])), key=lambda c: -abs(weight(c)))[:3]:
            rows.append(("", f"{text_format.decibans(c['weight']):>4}  {one_line(c.get('text', ''))}"))
        others = first_screen.alternatives(case)
        rows.append(("Or else", ", ".join(f"{one_line(h.get('title'))} {text_format.percent(h['probability'])}" for h in others)))
    rows += [("Not", f"{one_line(title)}, says the author: {one_line(why)}") for title, why in first_screen.ruled_out(case)]
    rows += [("Note", one_line(remark)) for remark in first_screen.remarks(case)]
    told.pop("Not checked", None)  # the last lines say it
    rows += [(SHORT.get(name, name), one_line("; ".join(lines))) for name, lines in told.items()]
    rows.append(("Data", how_to_read(case)))
    for i, (lead, text) in enumerate(do_next.do_next(case), 1):
        rows.append(("Do next" if i == 1 else "", f"{i}. {one_line(f'{lead} {text}')}"))
    rows += [("Checked", _checked(case)), ("Read", _read(case))]
    return [(name, text) for name, text in rows if text]


def _wrap(text: str, width: int, most: int, indent: str) -> list[str]:
    if most == 1:
        return [text_format.cut(text, width)]
    return textwrap.wrap(text, width, max_lines=most, placeholder=" \u2026", subsequent_indent=indent) or [""]


def _checked(case: Case) -> str:
    clear, unsure = first_screen.by_status(case, "clear"), first_screen.by_status(case, "cannot_tell", "error")
    blind = [one_line(b.get("what", "")) for b in case["blind_spots"]]
    text = f"{text_format.plural(len(clear), 'check')} clear" + (f", {len(unsure)} could not tell" if unsure else "")
    return text + (f"; missing: {text_format.joined(blind, 4)}" if blind else "")


def _read(case: Case) -> str:
    records = case["run"].get("records")
    lost = records.get("lost") if isinstance(records, dict) else None
    text = f"{text_format.plural(len(case['sources']), 'file')}, {text_format.plural(len(case['gaps']), 'gap')}"
    return text + (f" ({text_format.plural(lost, 'record')} lost)" if isinstance(lost, int) and lost else "")


def chart(case: Case, width: int) -> list[str]:
    """The loss in braille dots, each column from its lowest to its highest value; × above where it was not finite."""
    losses = [s for s in case["timeline"]["series"] if str(s.get("metric")).startswith("loss.")]
    series: Case = losses[0] if losses else {}
    attempts = [attempt.get("points") or [] for attempt in series.get("lives") or [] if isinstance(attempt, dict)]
    pairs = [p for attempt in attempts for p in attempt if isinstance(p, list) and len(p) == 2 and isinstance(p[0], (int, float))]
    finite = [(s, v) for s, v in pairs if isinstance(v, (int, float))]
    first, last = min((s for s, _ in pairs), default=0), max((s for s, _ in pairs), default=0)
    if len(finite) < 2 or first == last:
        return []
    low, high = min(v for _, v in finite), max(v for _, v in finite)
    log = series.get("scale") == "log" and low > 0
    bottom, top = (math.log(low), math.log(high)) if log else (low, high)
    labels = [text_format.number(float(high)), *[""] * (ROWS - 2), text_format.number(float(low))]
    gutter = max(6, *map(len, labels))
    columns = min(width - gutter - 3, 90)
    heights: dict[int, list[int]] = {}
    for step, v in finite:
        share = ((math.log(v) if log else v) - bottom) / ((top - bottom) or 1)
        dot = int((step - first) / (last - first) * (2 * columns - 1))
        heights.setdefault(dot, []).append(round((1 - share) * (4 * ROWS - 1)))
    cells = [[0x2800] * columns for _ in range(ROWS)]
    for dot, ys in heights.items():
        for y in range(min(ys), max(ys) + 1):
            cells[y // 4][dot // 2] |= DOTS[y % 4][dot % 2]
    blank = " " * (gutter + 2)
    lines = [f"{blank}{text_format.one_line(text_format.metric(str(series.get('metric'))))}{', log scale' if log else ''}"]
    if odd := {int((s - first) / (last - first) * (columns - 1)) for s, v in pairs if isinstance(v, str)}:
        lines.append(f"{'NaN':>{gutter}}  " + "".join("\u00d7" if i in odd else " " for i in range(columns)).rstrip())
    for label, row in zip(labels, cells, strict=True):
        lines.append(f"{label:>{gutter}} \u2502" + "".join(map(chr, row)).rstrip("\u2800"))
    if under := _spike_marks(case, columns, first, last):
        lines.append(blank + under)
    left = f"{text_format.axis_unit(case['run'])} {first}"
    return [*lines, blank + left + str(last).rjust(columns - len(left))]


def _spike_marks(case: Case, columns: int, first: float, last: float) -> str:
    """A line with an arrow and the step under each real spike, as far as they fit."""
    line = ""
    spikes = [s for s in case["spikes"] if isinstance(s.get("start"), int) and s.get("class") != "not_a_spike"]
    for spike in sorted(spikes, key=lambda s: int(s["start"])):
        at = int((spike["start"] - first) / (last - first) * (columns - 1))
        text = f"\u2191{spike['start']} {one_line(spike.get('class')).replace('_', ' ')}"
        if len(line) <= at and at + len(text) <= columns:
            line = line.ljust(at) + text + " "
    return line.rstrip()
