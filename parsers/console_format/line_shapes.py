"""The regex a line becomes once it was understood, so that all lines like it are read by one match (`shape_columns` makes numbers of them)."""

from __future__ import annotations

import bisect
import collections
import re
from dataclasses import dataclass, field

from parsers.console_format.lapping_bars import laps
from parsers.console_format.line_prefix import Field, Line
from parsers.console_format.line_steps import within_epochs

MAX_SHAPES = 12
Row = tuple[int, int | None, str, float, float | None, int | None]  # place, step, tag, value, time, rank
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

    def forget(self) -> None:
        """Every line is read by its words again."""
        self._spent += self.known
        self.known = []
        self._met.clear()

    def with_rows(self) -> list[Shape]:
        """Those whose rows wait."""
        found = [s for s in (*self.known, *self._spent) if s.rows]
        self._spent.clear()
        return found

    def moved(self, since: int, by: int, rows: list[Row]) -> list[Row]:
        """Moves the steps of all rows from this place on that wait; ``rows`` are those of no shape."""
        if not by:
            return rows
        for shape in (s for s in (*self.known, *self._spent) if s.steps):
            first = bisect.bisect_left(shape.places, since)
            shape.steps[first:] = [s if s is None else s + by for s in shape.steps[first:]]
        return [(r[0], r[1] + by if r[1] is not None and r[0] >= since else r[1], *r[2:]) for r in rows]

    def redrawn(self, steps: dict[int, int], replaced: set[int]) -> None:
        """The same of rows that wait here: places that are of other steps, and places that another one replaces."""
        since = min([*steps, *replaced])
        for shape in (s for s in (*self.known, *self._spent) if s.steps and s.places[-1] >= since):
            first = bisect.bisect_left(shape.places, since)
            kept = [i for i in range(first, len(shape.places)) if shape.places[i] not in replaced]
            shape.steps[first:] = [steps.get(shape.places[i], shape.steps[i]) for i in kept]
            shape.rows[first:] = [shape.rows[i] for i in kept]
            shape.places[first:] = [shape.places[i] for i in kept]

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
    more = "+" if after in "eEnaifNIAFtykKMBT," else "++"
    return (r"(?:[-+.\deEnaifNIAFty]|,(?=\d))" if "," in word else r"[-+.\deEnaifNIAFty]") + more + "[kKMBT]?" * scaled


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
        fixed = f.role in {"epochs", "length"} or (f.role == "total" and not line.bar)  # a line with another total is news
        hole = re.escape(text[f.start : f.end]) if fixed else _hole(f, text[f.start : f.end], text[f.end : f.end + 1], line.scaled)
        if f.role in {"skip", "epochs", "length"}:
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
    shape.simple = (
        not line.bar
        and not laps(line, parts)
        and not shape.missing
        and (named or ("step" not in parts and bool(word) and "epoch" not in parts))
    )
    shape.near = not parts
    shape.step_at = next((i for i, f in enumerate(kept) if f.role == ("step" if "step" in parts else "it")), -1)
    return shape


def of_megatron(line: Line) -> bool:
    """Is it the line that Megatron-LM prints of an iteration?"""
    return "elapsed time per iteration" in line.text


def lacks_loss(line: Line, usual: bool) -> bool:
    """Megatron leaves "lm loss" out where it was NaN or where all iterations were skipped; ``usual``: a line before had it."""
    return of_megatron(line) and not has_loss(line) and (usual or "loss scale" in line.text)
