"""Lines of delimited text into cells, headers into tags: helpers of csv_log, no parser."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from parsers.records import bare_tables
from parsers.records.cells import cell
from parsers.records.vocabulary import AXES, plain

_CATBOOST = {"learn_error": "train", "test_error": "test"}  # a file for each set, beside each other


def delimiter(lines: Sequence[str]) -> str:
    """Comma, tab, semicolon or bar: the one that the first line has and most lines have equally often; else blanks between numbers."""

    def score(mark: str) -> tuple[bool, float]:
        counts = [x.count(mark) for x in lines if x.strip() and not x.startswith("#")]
        common, times = Counter(counts).most_common(1)[0] if counts else (0, 0)
        return (bool(counts and counts[0]), times / len(counts) if common else 0.0)

    best = max(",\t;|", key=score)
    if any(score(best)):
        return best
    widths = {bare_tables.width(x) for x in lines[1:] if x.strip()}
    return " " if len(widths) == 1 and min(widths) > 1 else ","


def decimal(lines: Sequence[str], mark: str) -> str:
    """',' where the cells of a table that is not delimited by commas have decimal commas; else '.'."""
    if mark == ",":
        return "."
    cells = [c.strip(' "') for x in lines[1:] for c in x.split(mark)]
    commas = [c for c in cells if re.fullmatch(r"[+-]?[\d.]*,\d+(?:[eE][+-]?\d+)?", c)]
    points = any(re.fullmatch(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?", c) for c in cells)
    thousands = mark != ";" and all(re.fullmatch(r"[+-]?[1-9]\d{0,2}(,\d{3})+", c) for c in commas)
    return "," if commas and not points and not thousands else "."


def split(text: str, mark: str) -> list[str] | None:
    """The cells of a row, quotes resolved; None where the quoting is broken."""
    if '"' not in text:
        return text.split() if mark == " " else text.split(mark)
    try:
        return next(csv.reader([text], delimiter=mark, skipinitialspace=True), None)
    except csv.Error:
        return None


def records(lines: Sequence[str]) -> Iterator[str]:
    """Lines, those joined that a quoted cell spans."""
    record = ""
    for line in lines:
        record = f"{record}\n{line}" if record else line
        if record.count('"') % 2 == 0:
            yield record.rstrip("\r")
            record = ""


def is_header(cells: Sequence[str], first: bool) -> bool:
    """Names, not numbers. A first line may have columns named by numbers behind a column named 'step' or alike."""
    texts = 0
    for text in cells:
        kind = cell(text)
        if isinstance(kind, float):
            return first and plain(cells[0]) in AXES
        texts += kind is not None
    return texts * 2 >= len([c for c in cells if c.strip()]) and texts > 0


def looks_like_table(lines: Sequence[str]) -> bool:
    """A header of names over rows that are mostly numbers. Bars are borders, as a console draws them, and so are blanks."""
    mark = delimiter(lines)
    if mark in "| ":
        return False
    rows = [cells for line in lines[:50] if (cells := split(line, mark))]
    if len(rows) < 2 or len(rows[0]) < 2 or not is_header(rows[0], True) or any(len(c) > 80 for c in rows[0]):
        return False
    body = [r for r in rows[1:] if len(r) == len(rows[0])]
    kinds = [cell(c) for r in body for c in r]
    numbers, texts = sum(isinstance(k, float) for k in kinds), sum(isinstance(k, str) for k in kinds)
    known = bool(AXES & {plain(c) for c in rows[0]})
    return len(body) * 4 >= 3 * len(rows[1:]) and numbers > 0 and (numbers >= 2 * texts or (known and numbers >= len(body)))


def tags(names: Sequence[str], path: Path, metrics: Sequence[int]) -> list[str]:
    """Header names as metric names: see the module text of csv_log for files that name their metric elsewhere."""
    result = [n or f"column_{i + 1}" for i, n in enumerate(names)]
    runs = {n.rsplit(" - ", 1)[0] for n in names if " - " in n}
    if len(runs) == 1 and any(n.endswith(("__MIN", "__MAX")) for n in names):
        result = [n.rsplit(" - ", 1)[-1] for n in result]
    parts = path.with_suffix("").parts
    numbers = [i for i in metrics if plain(result[i]) not in AXES]
    if parts[-1] in _CATBOOST and path.suffix.lower() == ".tsv":
        for i in numbers:
            result[i] = f"{_CATBOOST[parts[-1]]}/{result[i]}"
    elif len(numbers) == 1:
        dvc = next((k for k in range(len(parts) - 2) if parts[k : k + 2] == ("plots", "metrics")), None)
        if dvc is not None and path.suffix.lower() == ".tsv":
            result[numbers[0]] = "/".join(parts[dvc + 2 :])
        elif path.suffix.lower() == ".plx":  # Polyaxon: events/metric/<tag>.plx, resources/metric/<tag>.plx of the machine
            result[numbers[0]] = ("system/" if "resources" in parts[-3:] else "") + parts[-1].replace("__", "/")
        elif result[numbers[0]].lower() in ("value", "values"):
            run, _, tag = parts[-1].rpartition("-tag-")
            result[numbers[0]] = tag if tag and run.startswith("run-") else parts[-1]
    seen: Counter[str] = Counter()
    for i, tag in enumerate(result):
        seen[tag] += 1
        if seen[tag] > 1:
            result[i] = f"{tag}.{seen[tag] - 1}"
    return result
