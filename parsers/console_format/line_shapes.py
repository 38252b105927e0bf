"""The regex a line becomes once it was understood, and the columns that all lines like it become.

A million lines of one shape are columns of strings: they turn into numbers column by column, never row by row.
"""

from __future__ import annotations

import collections
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from parsers import arrow
from parsers.console_format.line_prefix import Field, Line, number, seconds, whole
from parsers.console_format.line_steps import within_epochs
from parsers.tables import record_batch

if TYPE_CHECKING:
    import numpy as np

Row = tuple[int, int | None, str, float, float | None, int | None]  # place, step, tag, value, time, rank

MAX_SHAPES = 12
_COUNTS = {"it", "total", "epoch", "epochs", "rank"}


@dataclass
class Shape:
    """A line's words with holes for its numbers; ``fields`` say what the strings in the holes are."""

    pattern: re.Pattern[str]
    fields: list[Field]
    line: Line
    places: list[int] = field(default_factory=list)  # line << 20 | part of the line, of each row
    rows: list[tuple[str, ...]] = field(default_factory=list)
    steps: list[int | None] = field(default_factory=list)  # where they had to be worked out
    simple: bool = False  # the step stands in the line: no memory needed
    near: bool = False  # its step is that of the lines before
    missing: bool = False  # Megatron's line without its loss
    step_at: int = 0  # the hole with the step

    def size(self) -> int:
        """Measurements that wait to be handed over, or a few more."""
        return len(self.fields) * len(self.rows)


class Shapes:
    """The shapes that a log's lines have, the last one that was met first."""

    def __init__(self) -> None:
        self.known: list[Shape] = []
        self._spent: list[Shape] = []  # with rows, no longer matched
        self._met: collections.Counter[str] = collections.Counter()

    def size(self) -> int:
        return sum(s.size() for s in (*self.known, *self._spent))

    def with_rows(self) -> list[Shape]:
        """Those whose rows wait."""
        found = [s for s in (*self.known, *self._spent) if s.rows]
        self._spent.clear()
        return found

    def match(self, text: str, near: bool) -> tuple[Shape, tuple[str, ...]] | None:
        """The shape of a line and what is in its holes; one without a step only where a step is ``near``."""
        for i, shape in enumerate(self.known):
            if (m := shape.pattern.fullmatch(text)) is not None:
                if shape.near and not near:
                    return None
                if i:
                    self.known.insert(0, self.known.pop(i))
                return shape, m.groups()
        return None

    def learn(self, line: Line, parts: dict[str, int], headed: bool = False) -> None:
        """Keeps the shape of a line that came twice, so that its like are read by one regex. ``headed``: a line above may say the epoch."""
        key = re.sub(r"[-+.\d]+", "0", line.text)[:400]
        self._met[key] += 1
        if len(self._met) > 5000:
            self._met.clear()
        if self._met[key] == 2 and len(line.text) <= 2000:
            if len(self.known) >= MAX_SHAPES:
                self._spent.append(self.known.pop())
            self.known.insert(0, shape_of(line, parts))
            self.known[0].simple &= not headed


def has_loss(line: Line) -> bool:
    return any("loss" in f.tag and "scale" not in f.tag for f in line.fields if f.role == "metric")


def _hole(f: Field, word: str, after: str, scaled: bool) -> str:
    """What may stand in a number's place. Nothing is given back (``++``), unless a unit follows that looks alike."""
    if f.role == "time":
        return f".{{{len(word)}}}"
    if f.tag == "clock":
        return r"[\d:.]++"
    if f.role in _COUNTS or (f.role == "step" and word.isdigit()):
        return r"\d++"
    more = "+" if after in "eEnaifNIAFtyKMBT," else "++"
    return (r"(?:[-+.\deEnaifNIAFty]|,(?=\d))" if "," in word else r"[-+.\deEnaifNIAFty]") + more + "[KMBT]?" * scaled


def _loose(literal: str) -> str:
    """Text as it stands, but for the number of spaces at its end."""
    return re.escape(literal.rstrip(" ")) + " *+" * literal.endswith(" ")


def shape_of(line: Line, parts: dict[str, int]) -> Shape:
    """The shape of a line that was understood; `parts`: the numbers that say its step (none: that of before)."""
    text, out, pos, kept = line.text, [], 0, []
    for f in line.fields:
        literal = text[pos : f.start]
        if "%|" in literal and literal.count("|") > 1:  # the drawn bar itself
            literal, bar = literal[: literal.find("|") + 1], _loose(literal[literal.rfind("|") :])
            out.append(re.escape(literal) + "[^|]*" + bar)
        else:
            out.append(_loose(literal))
        fixed = f.role == "epochs" or (f.role == "total" and not line.bar)  # a line with another total is news
        hole = re.escape(text[f.start : f.end]) if fixed else _hole(f, text[f.start : f.end], text[f.end : f.end + 1], line.scaled)
        if f.role in {"skip", "epochs"}:
            out.append(hole)
        else:
            out.append(f"({hole})")
            kept.append(f)
        pos = f.end
    out.append(re.escape(text[pos:].rstrip()) + r"\s*")
    shape = Shape(re.compile("".join(out)), kept, line)
    word = next((f.tag for f in line.fields if f.role == "it"), "")
    shape.missing = "elapsed time per iteration" in text and not has_loss(line)
    named = "step" in parts and ("epoch" not in parts or not within_epochs(line))
    shape.simple = not line.bar and not shape.missing and (named or ("step" not in parts and bool(word) and "epoch" not in parts))
    shape.near = not parts
    shape.step_at = next((i for i, f in enumerate(kept) if f.role == ("step" if "step" in parts else "it")), -1)
    return shape


def batch(rows: list[Row], shapes: list[Shape]) -> pa.RecordBatch:
    """Metrics in the order of their places; empties the shapes."""
    import numpy as np

    tags: dict[str, int] = {}
    parts: list[tuple[Any, ...]] = []
    for shape in shapes:
        part = _part(shape, tags)
        if part is None:  # a word that is no number after all: row by row
            rows = rows + list(_rows(shape))
        else:
            parts.append(part)
        shape.places, shape.rows, shape.steps = [], [], []
    if rows:
        place, step, tag, value, time, rank = zip(*rows, strict=True)
        codes = [tags.setdefault(t, len(tags)) for t in tag]
        parts.append(
            (
                np.array(place, "i8"),
                *_nullable(list(step), "i8"),
                np.array(codes, "i4"),
                np.array(value, "f8"),
                *_nullable(list(time), "f8"),
                *_nullable(list(rank), "i4"),
            )
        )
    columns: list[Any] = list(parts[0]) if len(parts) == 1 else [np.concatenate(c) for c in zip(*parts, strict=True)]
    if (columns[0][1:] < columns[0][:-1]).any():
        order = np.argsort(columns[0], kind="stable")
        columns = [c[order] for c in columns]
    place, step, has_step, code, value, time, has_time, rank, has_rank = columns
    return record_batch(
        "metrics",
        {
            "step": arrow.numbers(step, has_step),
            "value": arrow.numbers(value),
            "tag": arrow.coded(code, list(tags)),
            "time": arrow.numbers(time, has_time),
            "rank": arrow.numbers(rank, has_rank),
            "at": arrow.numbers(place >> 20),
        },
    )


def _part(shape: Shape, tags: dict[str, int]) -> tuple[Any, ...] | None:
    """The columns of one shape; None where a word cannot be read in bulk."""
    import numpy as np

    words, n = list(zip(*shape.rows, strict=True)), len(shape.rows)
    metrics = measurements(shape)
    value = np.empty((n, len(metrics)))
    try:
        for j, (i, _) in enumerate(metrics):
            sample = shape.line.text[shape.fields[i].start : shape.fields[i].end]
            odd = shape.line.scaled or "," in sample  # else float() will do
            value[:, j] = np.fromiter(map(number if odd else float, words[i]), float, n)
        step = _nullable(list(map(int, words[shape.step_at])) if shape.simple else list(shape.steps), "i8")
    except (ValueError, OverflowError):
        return None
    times: list[float | None] = [None] * n
    ranks: list[int | None] = [None] * n
    for i, f in enumerate(shape.fields):
        if f.role == "time":
            times = _clocks(words[i], shape.line.clock)
        elif f.role == "rank":
            ranks = [whole(w) for w in words[i]]
    code = np.array([tags.setdefault(tag, len(tags)) for _, tag in metrics], "i4")
    wide = [np.array(shape.places, "i8"), *step, *_nullable(times, "f8"), *_nullable(ranks, "i4")]
    place, at, has_step, time, has_time, rank, has_rank = (np.repeat(c, len(metrics)) for c in wide)
    return place, at, has_step, np.tile(code, n), value.ravel(), time, has_time, rank, has_rank


def _clocks(words: tuple[str, ...], kind: str) -> list[float | None]:
    """Clocks of one width: each minute is worked out once."""
    if kind.startswith("iso") and len(words[0]) > 17:
        minutes = {m: seconds(m, kind) for m in {w[:16] for w in words}}
        try:
            return [minutes[w[:16]] + float(w[17:].replace(",", ".")) for w in words]  # type: ignore[operator]
        except (TypeError, ValueError):
            pass
    return [seconds(w, kind) for w in words]


def measurements(shape: Shape) -> list[tuple[int, str]]:
    """Which holes are measurements. The epoch is one where it is not itself the step."""
    stepped = any(f.role in {"step", "it"} for f in shape.fields)
    found = [(i, f.tag) for i, f in enumerate(shape.fields) if f.role == "metric"]
    return found + [(i, "epoch") for i, f in enumerate(shape.fields) if f.role == "epoch" and stepped]


def _rows(shape: Shape) -> list[Row]:
    out: list[Row] = []
    for j, (place, words) in enumerate(zip(shape.places, shape.rows, strict=True)):
        of = {f.role: w for f, w in zip(shape.fields, words, strict=True)}
        step = whole(words[shape.step_at]) if shape.simple else shape.steps[j]
        time = seconds(of["time"], shape.line.clock) if "time" in of else None
        for i, tag in measurements(shape):
            try:
                out.append((place, step, tag, number(words[i]), time, whole(of["rank"]) if "rank" in of else None))
            except ValueError:
                continue
    return out


def _nullable(values: list[Any], kind: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Values and which of them are there."""
    import numpy as np

    if None not in values:
        return np.array(values, kind), np.ones(len(values), bool)
    return np.array([0 if v is None else v for v in values], kind), np.array([v is not None for v in values], bool)
