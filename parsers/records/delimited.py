"""Bytes of delimited text into blocks of lines, lines into cells, headers into tags: helpers of csv_log, no parser."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from parsers.records.cells import cell
from parsers.records.vocabulary import AXES, plain
from parsers.tables import Gap

FIRST_BLOCK, BLOCK = 1 << 16, 1 << 21
MAX_LINE = 1 << 24
CONTROLS = bytes(set(range(1, 32)) - set(b"\t\r\n"))  # NUL is told apart: a hole left by a crash


def odd_characters(text: str, usual: bytes = b"") -> int:
    """Control characters but tab and line ends (and ``usual``), and what could not be decoded."""
    data = text.encode("utf-8", "replace")
    odd = bytes(set(b"\0" + CONTROLS) - set(usual))
    return len(data) - len(data.translate(None, odd)) + text.count("\ufffd")


def encoding(head: bytes) -> str:
    """utf-8, or UTF-16 by its byte order mark or by the NUL in every second byte (what PowerShell's ``>`` writes)."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    sample = head[:400]
    if len(sample) >= 8 and sample[0::2].count(0) == 0 and sample[1::2].count(0) * 10 > len(sample) * 4:
        return "utf-16-le"
    return "utf-8"


def blocks(path: Path) -> Iterator[tuple[int, bytes] | Gap]:
    """Whole lines in UTF-8 with the number of their first line; only the file's end may lack its line end.

    Runs of NUL bytes come as one NUL, so that a preallocated tail of gigabytes costs no memory.
    """
    with path.open("rb") as raw:
        head = raw.read(4096)
        raw.seek(0)
        code = encoding(head)
        text = None if code == "utf-8" else io.TextIOWrapper(raw, code, "replace", newline="")
        old_mac = b"\r" in head and b"\n" not in head
        at, rest, size, skipping = 1, b"", FIRST_BLOCK, False
        while new := text.read(size).encode("utf-8", "replace") if text else raw.read(size):
            if at == 1 and not rest and new.startswith(b"\xef\xbb\xbf"):
                new = new[3:]
            if b"\x00" in new:
                new = re.sub(rb"\x00+", b"\x00", new)
            data = rest + (new.replace(b"\r", b"\n") if old_mac else new)
            size = BLOCK
            end = data.rfind(b"\n") + 1
            rest = data[end:]
            if skipping and end:
                data, at, skipping = data[data.find(b"\n") + 1 : end], at + 1, False
            else:
                data = data[:end]
            if data:
                yield at, data
                at += data.count(b"\n")
            if len(rest) > MAX_LINE or skipping:
                if not skipping:
                    yield Gap(f"line {at}", f"a line of more than {MAX_LINE >> 20} MiB", 1)
                rest, skipping = b"", True
        if rest and not skipping:
            yield at, rest


def delimiter(lines: Sequence[str]) -> str:
    """Comma, tab, semicolon or bar: the one that the first line has and most lines have equally often."""

    def score(mark: str) -> tuple[bool, float]:
        counts = [x.count(mark) for x in lines if x.strip() and not x.startswith("#")]
        common, times = Counter(counts).most_common(1)[0] if counts else (0, 0)
        return (bool(counts and counts[0]), times / len(counts) if common else 0.0)

    best = max(",\t;|", key=score)
    return best if any(score(best)) else ","


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
        return text.split(mark)
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
    """A header of names over rows that are mostly numbers."""
    mark = delimiter(lines)
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
    if len(numbers) == 1:
        dvc = next((k for k in range(len(parts) - 2) if parts[k : k + 2] == ("plots", "metrics")), None)
        if dvc is not None and path.suffix.lower() == ".tsv":
            result[numbers[0]] = "/".join(parts[dvc + 2 :])
        elif result[numbers[0]].lower() in ("value", "values"):
            run, _, tag = parts[-1].rpartition("-tag-")
            result[numbers[0]] = tag if tag and run.startswith("run-") else parts[-1]
    seen: Counter[str] = Counter()
    for i, tag in enumerate(result):
        seen[tag] += 1
        if seen[tag] > 1:
            result[i] = f"{tag}.{seen[tag] - 1}"
    return result
