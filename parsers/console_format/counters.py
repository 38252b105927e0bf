"""Finds the step of lines that count in a word which is often something else: ``Episode 10  reward: 3.5``, ``epoch 0 batch 20 mse 0.5``, ``50:  learn: 0.4``.

A batch may be a size and a number in front of a line anything, so such a word is believed once it rises over three lines with the same
names; the first two wait for the third. Lines that name a step, or stand right behind one, are not asked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from parsers.console_format.line_prefix import Field, Line, Where, whole
from parsers.lazy_regex import lazy_re
from parsers.records import vocabulary

_PROOF = 3  # lines that rise: of unrelated numbers every second pair does, and every sixth triple
_MOST_KINDS = 1000  # kinds of lines that are watched at a time (a bound)
_BEFORE = {"time", "rank", "epoch", "epochs"}
_OF_ANOTHER = {"clock", "progress"}  # "[99.94%] batch_index=105472"
_MEASURED = {"metric", "epoch", "epochs", "time", "rank"}  # what such a line holds
_NAMED = 2  # names that no prose has behind its first number
# What stands behind a number that begins a line and counts: "50: loss 0.4", "50  train 0.4  test 0.5".
_ALONE = lazy_re(
    r"\s?[:|)]\s|\t|(?:\s{1,8}+(?!(?i:nan|inf)\b)[A-Za-z_][\w@/.]{0,40}+(?:[:=] {0,8}+|\s{1,8}+)[-+.\w%]{1,30}+,?+){1,40}+\s{0,200}+$"
)


Said = tuple[Where, Line]


@dataclass
class _Kind:
    """Lines with the same names: where the last one was, and those that wait for proof."""

    last: tuple[int, int]
    waiting: list[Said] = field(default_factory=list)
    proved: bool = False


_LISTED = {"sample", "samples"}  # an evaluation may list them one by one: they count in a log that names no step


class Counters:
    """``read`` gives back the lines that can be taken now, those whose counter proved to be one with their step."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[str, ...], _Kind] = {}

    def read(self, where: Where, line: Line, near: bool, stepped: bool = False, headed: bool = False) -> list[Said]:
        """``near``: a line with a step stands right above; ``stepped``: one stands anywhere above; ``headed``: an epoch stands alone above."""
        i = _counter(line)
        if i is None or not line.metrics() or (headed and _is_row(line, line.fields[i])):
            return [(where, line)]
        if stepped and line.fields[i].role == "epoch":
            return [_stepped(where, line)]  # it stands at the step above: what waits would come to stand at a later one
        if [f.role for f in line.fields if f.role not in _BEFORE] == ["metric"]:
            return [_stepped(where, line)]  # it counts nothing but what stands below it
        names = tuple(f.tag for f in line.fields)
        kind = self._kinds.get(names)
        if kind is None and (near or (stepped and line.fields[i].tag.lower() in _LISTED) or len(self._kinds) >= _MOST_KINDS):
            return [(where, line)]
        place = (line.value("epoch") or 0, whole(line.text[line.fields[i].start : line.fields[i].end]) or 0)
        kind = kind or self._kinds.setdefault(names, _Kind(place))
        rises, kind.last = place > kind.last, place
        if kind.proved:
            return [_stepped(where, line)]
        failed: list[Said] = []
        if kind.waiting and not rises:
            failed, kind.waiting = kind.waiting, []
        kind.waiting.append((where, line))
        if len(kind.waiting) < _PROOF:
            return failed
        kind.proved = True
        found, kind.waiting = kind.waiting, []
        return [_stepped(*x) for x in found]

    def rest(self) -> list[Said]:
        """Lines whose counter was not proved by the end of the log."""
        found = [x for kind in self._kinds.values() for x in kind.waiting]
        self._kinds.clear()
        return sorted(found, key=lambda x: x[0].place)


def _counter(line: Line) -> int | None:
    """Which field may count: the first of the line that is neither clock nor epoch, by its word or where it stands; or an epoch with nothing but
    words and numbers behind it."""
    if line.bar or line.braces or line.has("step") or line.has("it"):
        return None
    i = next((i for i, f in enumerate(line.fields) if f.role not in _BEFORE and f.tag not in _OF_ANOTHER), None)
    i = _behind_seconds(line, i)
    if i is None or not line.text[line.fields[i].start : line.fields[i].end].isdigit():
        return _bare_epoch(line)
    f = line.fields[i]
    word = f.tag.split()[-1].lower() if f.tag else ""
    begins = not word and (i > 0 or not line.text[line.body : f.start].strip(" [(")) and _heads(line, f)
    letter = bool(word) and word in vocabulary.LAST_RESORT and _begins(line, f)  # "s=20 xent=2.03"
    return i if begins or letter or word in vocabulary.COUNTED else _bare_epoch(line)


def _is_row(line: Line, f: Field) -> bool:
    """May a number without a word be that of a row, as of each class in a block of results?"""
    return not f.tag and _ALONE.match(line.text, f.end) is None


def _heads(line: Line, f: Field) -> bool:
    """Does a number without a word stand in front of measurements: by what separates them, or in front of two names with their values?"""
    if _ALONE.match(line.text, f.end) is not None:
        return True
    behind = [other for other in line.fields if other.start > f.start and other.role != "skip"]
    if not line.explicit and not any("." in line.text[other.start : other.end] for other in behind):
        return False  # rows of whole numbers are a table: jobs, files, sizes
    if len(behind) < _NAMED or any(other.role not in _MEASURED for other in behind):
        return False
    close = {"[": "]", "(": ")"}.get(line.text[: f.start].rstrip(" ")[-1:], "")  # "[100] val nll 6.14 bpd 0.88"
    between = line.text[f.end : behind[0].start].removeprefix(close)
    return between[:1] == " " and _names(between, behind[0].tag)


def _behind_seconds(line: Line, i: int | None) -> int | None:
    """The whole number behind a decimal one in front of a line (``4.18   6400 td_loss=0.3``): seconds since the start, then the step."""
    if i is None or len(line.fields) < i + 2 or line.text[line.body : line.fields[i].start].strip():
        return i
    clock, count = line.fields[i], line.fields[i + 1]
    seconds = not clock.tag and "." in line.text[clock.start : clock.end] and not line.text[clock.end : count.start].strip()
    return i + 1 if seconds and not count.tag and count.role == clock.role else i


def _bare_epoch(line: Line) -> int | None:
    """The epoch of ``ep 3  fit 0.52  val 0.48``, ``ep 50 | R -20.7 (best -20.7) | huber 3.07e-02 | 258 f/s``: in front of two measurements or more, of
    which one has a fraction."""
    told = [(i, f) for i, f in enumerate(line.fields) if f.role not in ("time", "rank")]
    if not told or told[0][1].role != "epoch" or any(f.role not in ("metric", "epochs", "skip") for _, f in told[1:]):
        return None
    i, epoch = told[0]
    fields, text = [f for _, f in told], line.text
    measured = [(a, b) for a, b in pairwise(fields) if b.role == "metric"]
    named = len(measured) > 1 and all(_names(text[a.end : b.start], b.tag) for a, b in measured)
    return i if named and _begins(line, epoch) and any("." in text[b.start : b.end] for _, b in measured) else None


def _names(gap: str, tag: str) -> bool:
    """Does nothing stand between two numbers but the unit of the first and the name of the second?"""
    words, name = gap.strip(" ,;|:=)").split(), tag.split()
    return len(words) <= len(name) + 1 and words[-len(name) :] == name


def _begins(line: Line, f: Field) -> bool:
    """Does the line begin with this number and its word, but for the name of who logs it (``seqtag: s=20``)?"""
    front = line.text[line.body : f.start].strip(" =[(|#")
    return front.rpartition(": ")[2].strip(" :").lower() == f.tag.lower()


def _stepped(where: Where, line: Line) -> Said:
    i = _counter(line)
    if i is not None:
        role = "epoch" if line.fields[i].role == "epoch" else "step"
        line.fields[i], line.counted = line.fields[i]._replace(role=role), True
    return where, line


def numbered(line: Line, epoch: int | None) -> bool:
    """Does a line begin with the number of the epoch above it, and measure several things behind it (``[  3] rec 61.1 kl 0.05`` below a bar)?"""
    front = next((f for f in line.fields if f.role != "time"), None)
    if epoch is None or front is None or front.role != "skip" or front.tag or sum(f.role == "metric" for f in line.fields) < 2:
        return False
    alone = not line.text[line.body : front.start].strip(" [#")
    return alone and line.text[front.start : front.end] == str(epoch)
