"""Reads CSV, TSV and other delimited tables of metrics, and batch manifests in that form, whatever their extension.

Known writers: Lightning and Keras CSVLogger, Ultralytics ``results.csv`` (padded cells), Stable-Baselines3 ``progress.csv`` and
``monitor.csv``, AlgoPerf ``measurements.csv``, Ray Tune ``progress.csv``, DVCLive ``plots/metrics/**.tsv`` (the tag is the path below
``plots/metrics``), Polyaxon ``events/metric/*.plx`` (the tag is the file's name), DeepSpeed ``csv_monitor``, the web exports of W&B and
TensorBoard (``Wall time,Step,Value``: the tag is in the file's name), pandas and by hand; wide tables, and long ones with named rows.

- The step is the best column that is one by its name (the names are below, and the same for every format), else the epoch,
  else the row's number from 0; a note says so. A step that starts again with every epoch is made to grow. In
  ``monitor.csv`` a row is an episode, and its step is the sum of the episode lengths so far, as
  stable_baselines3.common.results_plotter has it; ``t_start`` of its first line plus ``t`` is the time.
  Monitors of environments that lie together, numbered from 0, stand at the timesteps of all of them.
- Empty, NA, None and null mean "not logged"; nan and inf are values (a Keras CSVLogger writes NA for absent, nan for NaN).
- Restarts append: a header in the middle of the file may name other columns; a row cut by a crash may be followed, on the same
  line, by the first row of the next launch, or by a hole of NUL bytes. Such lines are gaps, their neighbours are not.
- What follows a header goes by Arrow as long as nothing is odd, else row by row.
- Rows of another width are believed when two in a row have that width, but not below a header that Keras sorts: a further column
  stands anywhere among its own. A last line without its line end is believed when its last cell is no shorter than those above it,
  for the cut may have gone through a number.
- W&B exports name columns "run - metric"; where all are of one run, the run's name is dropped. ``__MIN`` and
  ``__MAX`` (the envelope of the points that the page has drawn) stay metrics of their own.
- A table without steps that looks like a data set or a list of results yields a Note and no rows.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from parsers.console_format import envelopes, feed
from parsers.records import bare_tables, delimited, gpu_monitor_rows, line_blocks
from parsers.records.csv_rows import Writer
from parsers.records.vocabulary import AXES, plain
from parsers.tables import HEAD_BYTES, Gap, Note

AT = "line"
GROWS = "rows"

_SAMPLE_ROWS = 300
_MAX_HEADERS = 100
_MAX_WIDENED = 8  # times that rows may grow a column without a header
_CELL_LINES = 400  # at most, of one quoted cell: arrays printed by numpy take some
_NOT_A_TABLE = ("{", "[", "<", "#!", "version https://git-lfs", "/annex/", "%PDF", "%!", "---")
_HOLE = "NUL bytes: a hole left by a crash"


def claims(path: Path, head: bytes) -> bool:
    """A header of names over rows of numbers, whatever the extension; any text at all where that is .csv or .tsv."""
    named = path.suffix.lower() in (".csv", ".tsv", ".plx")
    encoding = line_blocks.encoding(head)
    if not named and encoding == "utf-8" and len(head) - len(head.translate(None, line_blocks.CONTROLS)) > len(head) / 50:
        return False  # the same as below, without decoding
    text = head.decode(encoding, "replace").replace("\x00", "").lstrip("\ufeff \r\n")
    if not text.strip():
        return named and bool(head)
    if text.startswith(_NOT_A_TABLE) or line_blocks.odd_characters(text) > len(text) / 50:
        return False
    lines = [x for x in re.split(r"[\r\n]+", text) if x and not x.startswith("#")]
    monitors = gpu_monitor_rows.dmon_columns(text.partition("\n")[0]) or gpu_monitor_rows.columns("".join(lines[:1]))
    if monitors or envelopes.kind_of(path, head):
        return False  # a monitor's rows, which are of devices and moments, or lines of a log
    lines = lines[:-1] if len(head) >= HEAD_BYTES else lines
    return delimited.looks_like_table(lines) or bare_tables.is_measured(path, lines) or (named and not feed.is_console(lines))


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    """Metric rows in file order, manifests as ``batches``, constant text columns as config. Raises OSError only."""
    csv.field_size_limit(line_blocks.MAX_LINE)
    table = _Lines(path)
    for block in line_blocks.blocks(path):
        if isinstance(block, Gap):
            yield block
            continue
        first, data = table.with_carry(*block)
        if table.odd or not table.out.fast(first, data):
            table.read(first, data, final=not data.endswith(b"\n"))
    table.read(*table.with_carry(table.next_line, b""), final=True)
    table.settle_odd()
    yield from table.out.end()


class _Lines:
    """Walks down the lines: which are rows, which headers, which damaged."""

    def __init__(self, path: Path) -> None:
        self.out = Writer(path)
        self.next_line, self.carry = 1, b""
        self.odd: tuple[int, list[str]] | None = None  # a row of another width, waiting for a second one
        self.headers = self.widened = 0
        self.narrow: set[int] = set()  # widths below the header's that proved to be meant

    def with_carry(self, first: int, data: bytes) -> tuple[int, bytes]:
        """The lines that the block before could not finish, in front of this one."""
        carry, self.carry = self.carry, b""
        self.next_line = first + data.count(b"\n")
        return first - carry.count(b"\n"), carry + data

    def read(self, first: int, data: bytes, final: bool) -> None:
        """The tolerant way through a block of lines."""
        lines = data.decode("utf-8", "replace").split("\n")
        torn = lines.pop()
        i = 0
        while i < len(lines):
            names = self.out.names
            took = self.line(first + i, lines, i, final)
            if not took:
                self.carry = "\n".join([*lines[i:], torn]).encode("utf-8", "replace")
                return
            i += took
            if self.out.names is not names and not self.odd and self.out.fast(first + i, "\n".join([*lines[i:], ""]).encode()):
                break
        if torn:
            self.torn(first + len(lines), torn)

    def line(self, at: int, lines: list[str], i: int, final: bool) -> int:
        """The row at ``lines[i]``; returns how many lines it took (a quoted cell may span some), 0 where the block
        ends too early to say."""
        text = lines[i].strip("\r\ufeff")
        if "\x00" in text:
            before, _, text = text.rpartition("\x00")
            self.out.gaps.add(at, _HOLE, 1 if before.strip("\x00 ") else 0)
        if not text.strip() or re.fullmatch(r"sep=.\s*", text):
            return 1  # "sep=;" is Excel's hint
        if text.startswith("#"):
            self.comment(at, text, lines, i)
            return 1
        if not self.out.delimiter:
            self.out.dialect([text, *lines[i + 1 : i + _SAMPLE_ROWS]])
        cells, took = self.cells(text, lines, i, final)
        last = i + 3 > len(lines) and not final
        if not took or (last and (not self.out.names or (cells and delimited.is_header(cells, False)))):
            return 0
        if cells is None:
            self.out.gaps.add(at, "a quoted cell that does not end", 1)
        elif self.header(at, cells, lines, i):
            pass
        elif len(cells) == len(self.out.names) + 1 and not cells[-1].strip():
            self.sound_row(at, cells[:-1])
        elif len(cells) == len(self.out.names) or len(cells) in self.narrow:
            self.sound_row(at, cells)
        elif self.out.names:
            self.other_width(at, cells, lines, i)
        return took

    def cells(self, text: str, lines: list[str], i: int, final: bool) -> tuple[list[str] | None, int]:
        if text.count('"') % 2 == 0:
            return delimited.split(text, self.out.delimiter), 1
        joined = text
        for n, line in enumerate(lines[i + 1 : i + _CELL_LINES], start=2):
            joined += "\n" + line
            if line.count('"') % 2:
                cells = delimited.split(joined, self.out.delimiter)
                if cells is not None and (not self.out.names or len(cells) == len(self.out.names)):
                    return cells, n
                break
        else:
            if not final and len(lines) - i < _CELL_LINES:
                return None, 0
        cells = text.split(self.out.delimiter)  # a quote that is part of a text
        return (cells if len(cells) == len(self.out.names) else None), 1

    def torn(self, at: int, text: str) -> None:
        """The last line, without its line end."""
        cells = delimited.split(text.rpartition("\x00")[2], self.out.delimiter) if self.out.delimiter else None
        if not self.out.names or (
            cells and len(cells) == len(self.out.names) and len(cells[-1].strip()) >= min(self.out.last_lengths, default=0)
        ):
            self.line(at, [text], 0, True)
        elif text.strip("\x00 \r"):
            self.out.gaps.add(at, "the last line is cut off", 1)
        else:
            self.out.gaps.add(at, _HOLE, 0)

    def other_width(self, at: int, cells: list[str], lines: list[str], i: int) -> None:
        if self.odd is None or len(self.odd[1]) != len(cells):
            self.settle_odd()
            self.odd = (at, cells)
            return
        waiting, self.odd = self.odd, None
        if len(cells) > len(self.out.names) or not self.out.named:
            self.widened += 1
            sorted_in = self.out.named and self.out.names[0] == "epoch" and self.out.names[1:] == sorted(self.out.names[1:])
            if self.widened > _MAX_WIDENED or sorted_in:  # Keras' CSVLogger sorts its columns: a further one stands anywhere among them
                self.odd = (at, cells)
                self.out.gaps.add(waiting[0], f"{len(cells)} columns where the header has {len(self.out.names)}", 1)
                return
            self.out.widen(waiting[0], len(cells), lines[i : i + _SAMPLE_ROWS])
        else:
            self.narrow.add(len(cells))
        self.out.row(*waiting)
        self.out.row(at, cells)

    def settle_odd(self) -> None:
        if self.odd is not None:
            (at, cells), self.odd = self.odd, None
            self.out.gaps.add(at, f"{len(cells)} columns where the header has {len(self.out.names)}", 1)

    def comment(self, at: int, text: str, lines: list[str], i: int) -> None:
        body = text.lstrip("#").strip()
        if body.startswith("{"):
            try:
                values = json.loads(body)
            except (ValueError, RecursionError):
                self.out.gaps.add(at, "a comment that should be JSON and is not", 1)
                return
            start = values.get("t_start")
            self.out.t_start = float(start) if isinstance(start, (int, float)) else self.out.t_start
            for key, value in values.items():
                self.out.rows.config(key, value, at=at)
        elif not self.out.names and i + 1 < len(lines) and not lines[i + 1].startswith("#"):
            self.out.dialect([body, *lines[i + 1 : i + _SAMPLE_ROWS]])  # numpy.savetxt's header; a sentence has commas, too
            cells, row = delimited.split(body, self.out.delimiter), delimited.split(lines[i + 1], self.out.delimiter)
            named = cells and row and len(cells) == len(row) > 1 and not delimited.is_header(row, True)
            if not (named and self.header(at, cells or [], lines, i)):
                self.out.delimiter = ""

    def header(self, at: int, cells: list[str], lines: list[str], i: int) -> bool:
        """Takes a row of names as the header. A first row that is none means that the columns have no names."""
        if not delimited.is_header(cells, not self.out.names):
            if not self.out.names:
                self.out.unnamed(len(cells), lines[i : i + _SAMPLE_ROWS])
            return False
        names = [c.strip() for c in cells]
        if len(names) > 1 and not names[-1]:
            below = lines[i + 1].rstrip("\r") if i + 1 < len(lines) else ""
            width = len(delimited.split(below, self.out.delimiter) or "")
            if names[:-1] == self.out.names or width < len(names) or below.endswith(self.out.delimiter):
                names.pop()  # a delimiter after the last name
        if names == self.out.names:
            self.out.note(f"header repeated at line {at}: another launch appended to the file")
            return True
        if self.out.names:
            shared = len(set(names) & set(self.out.names))
            known = AXES & {plain(n) for n in names}
            if (shared * 2 < min(len(names), len(self.out.names)) and not known) or self.headers > _MAX_HEADERS:
                return False
            self.headers += 1
            self.out.note(f"another header at line {at}")
        self.settle_odd()
        self.out.layout(names, lines[i + 1 : i + _SAMPLE_ROWS], named=True)
        return True

    def sound_row(self, at: int, cells: Sequence[str]) -> None:
        self.settle_odd()
        self.out.row(at, cells)
