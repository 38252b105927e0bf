"""Finds out from headings of which data the numbers below them are: ``Starting evaluation``, ``evaluate:dev``, ``==== Test output ====``, ``Test epoch: 5 ...``.

A heading is a line of a few words, one of them a word for evaluation, without a measurement. It holds for values that stand below without a step, until
training is named, an epoch begins or a line of training measures at a step. Lines about data ("Loading test images"), settings (``evaluate: False``) and
an evaluation that ended are none.
"""

from __future__ import annotations

from parsers.console_format.grammars import EVAL
from parsers.console_format.line_labels import EVAL_WORD, OF_LOOP, TRAIN_WORD
from parsers.console_format.line_prefix import Line
from parsers.console_format.line_shapes import Row
from parsers.lazy_regex import lazy_re
from parsers.records import vocabulary

HEAD = lazy_re(r"(?:\[(?>[^\]]*?=\d)[^\]]*+\])+:?$")  # [epoch=0][batch=9/10]:
EPOCH_ABOVE = lazy_re(
    r"(?i)\W*(?:(?:start(?:ing)?|begin(?:ning)?|train(?:ing)?|test(?:ing)?|val(?:id(?:ation)?)?|eval(?:uation)?)\W{1,3}){0,2}epoch\b"
    r"|\s*+\[ROUND \d{1,6}\]\s*$"  # Flower: of federated learning
)
EPOCH_RATE = lazy_re(r"\s*+epoch \d{1,6} lr \d[\d.e+-]{0,30}\s*$")  # DARTS and its heirs: what stands below is of this epoch
_MOST_LINES = 200  # below a heading (a bound): a confusion matrix or a table of classes may stand between
_MOST_WORDS = 5
_WORD = lazy_re(r"[A-Za-z]+")
_ACTS = {"evaluate", "evaluating", "validate", "validating", "testing", "result", "results", "performance", "summary", "metrics", "score", "scores", "output"}  # fmt: skip
# "valid" and "dev" have other meanings within a line
_ANYWHERE = {"evaluation", "validation", "evaluating", "validating", "testing", "test", "eval"}
_TRAINS = {"train", "training"}
_ENDS = {"end", "ended", "ends", "done", "finish", "finished", "complete", "completed", "over"}
_OF_DATA = lazy_re(
    r"(?i)load|read|writ|saving|saved|creat|build|built|prepar|split|size|number|length|examples|samples|images|files?\b|path|dir\b|folder|set\b|data"
    r"|every|before|true|false|none|null|skip|no\b|not\b|without|if\b|when"
)
_SET_TO = lazy_re(r"[\w ]+[:=]\s*(?P<value>\S+)$")
_FRACTION = lazy_re(r"[.nN]")
_LONGEST = 200  # characters of such a line (a bound)
_NEAR = 3  # lines
_STEPS = frozenset({"iteration", "iter", "step"})  # "iterations: 20000" is a setting
_COUNTS = lazy_re(
    rf"(?P<rule>\W*)(?i:(?:num|number|no\.?|#)[ _](?:of[ _])?)?(?P<word>(?i:{'|'.join(sorted(vocabulary.COUNTED | _STEPS))}))[ :#=]{{1,3}}(?P<value>\d{{1,9}})(?: ?/ ?\d+)?(?P<end>\W*)"
)
_KEY = lazy_re(r"\s*[a-z_]+:\s*")
_BORDERS = 2  # unit: of a heading in a box; more are cells
_RULE = 3  # bound: marks in a row, as of a line that is drawn through the page
_VALUES = lazy_re(r"[\d.%]+$")
_OF_PASS = lazy_re(r"[^\[\]]{0,40}\[ *\d{1,9}/\d{1,9} *[\](]")


class Headings:
    """What the lines above a value say of it: ``phase`` the word of the evaluation that is under way, ``count`` the place that stands right above."""

    def __init__(self) -> None:
        self._word, self.line = "", 0  # where the last one stands, of training or evaluation
        self._count, self._counted, self._rose, self._ruled = ("", -1), -_NEAR - 1, False, False
        self._first = (-1, -1)  # line and number of a count that was believed when it rose

    def phase(self, n: int) -> str:
        return self._word if n - self.line <= _MOST_LINES else ""

    def count(self, n: int) -> tuple[str, int] | None:
        """Word and number of a line right above that counts (``Generation 5``). ``batch: 64`` is a size until it rises or stands in a drawn line,
        and batches of an evaluation are no place of the run."""
        sure = self._rose or self._ruled or self._count[0] not in vocabulary.WEAK_STEP | _STEPS
        return self._count if sure and 0 < n - self._counted <= _NEAR and not self.phase(n) else None

    def below_the_first(self, rows: list[Row]) -> list[Row]:
        """The rows so far, those below the first count at its number: it is believed once another one is higher."""
        (at, value), self._first = self._first, (-1, -1)
        if at < 0:
            return rows
        return [(r[0], value, *r[2:]) if r[1] is None and 0 < (r[0] >> 20) - at <= _NEAR else r for r in rows]

    def tell(self, n: int, line: Line) -> bool:
        """Is a line of names and fractions a measurement because of what stands above it? A count must have risen: it may head settings."""
        return bool(self.phase(n) or (self._rose and self.count(n))) and is_value(line)

    def trains(self) -> None:
        """A line of training measured something at its step."""
        self._word = ""

    def read(self, n: int, line: Line, body: str, epoch: int | None, started: bool = True) -> bool:
        """A line that measures nothing: does it say that an evaluation comes next? ``epoch``: the last one that was named; ``started``: something
        was measured before, or else ``eval:`` may be a key of settings in YAML."""
        m = _COUNTS.fullmatch(body) if len(body) < _LONGEST and not line.has("epoch") else None
        if m is not None:
            before, at, rose = self._count, self._counted, self._rose
            self._count, self._counted = (m["word"].lower(), int(m["value"])), n
            self._ruled = min(len(m["rule"].strip()), len(m["end"].strip())) >= _RULE
            self._rose = before[0] == self._count[0] and (before[1] < self._count[1] or (epoch is not None and before[1] != self._count[1]))
            self._first = (at, before[1]) if self._rose and not rose else self._first
        words = [w.lower() for w in _WORD.findall(body)] if body.count("│") <= _BORDERS else []  # a row: a module in mode eval
        if line.bar or not 0 < len(words) <= _MOST_WORDS or (not started and _KEY.fullmatch(line.text) is not None):
            return False
        speaks = [EVAL[w] for i, w in enumerate(words) if w in EVAL and (i == 0 or w in _ANYWHERE or (w == words[-1] and w != "valid"))]
        spoken = speaks[-1] if speaks else ""
        over = not _ENDS.isdisjoint(words)
        if not _TRAINS.isdisjoint(words) or (words[0] in ("epoch", "round") and not spoken) or (spoken and over):
            self._word, self.line = (self._word if spoken and not over else ""), n
        elif spoken and _speaks(words, body, line):
            self._word, self.line = spoken, n
            return True
        return False


def _speaks(words: list[str], body: str, line: Line) -> bool:
    """Does a line with a word for evaluation announce one?"""
    if (m := _SET_TO.match(body.strip())) is not None and m["value"].lower() not in EVAL:
        acts = bool({*words} & _ACTS) or any(f.role in {"epoch", "step", "it"} for f in line.fields)
        return acts and not _OF_DATA.search(m["value"]) and not _VALUES.match(m["value"])
    return _OF_DATA.search(body) is None or not {*words}.isdisjoint(_ACTS)


def of_pass(line: Line, step: int | None) -> tuple[str, int | None] | None:
    """What the lines of one pass over the data of an evaluation have in common (``Test: [ 10/19]``), each of which replaces the one before."""
    return (line.mode, step) if line.mode and _OF_PASS.match(line.text, line.body) is not None else None


def of_phase(word: str, metrics: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """The measurements with the word of their phase in front, where they have none of their own and are of it."""
    if not word:
        return metrics
    return [(t if EVAL_WORD.search(t) or TRAIN_WORD.search(t) or OF_LOOP.search(t) else f"{word} {t}", v) for t, v in metrics]


def is_value(line: Line) -> bool:
    """Is a line nothing but names and fractions (``Precision: 0.25``)? Whole numbers below a heading count things, a label in front makes a row of classes."""
    numbers = [f for f in line.fields if f.role not in {"time", "rank"}]
    fractions = all(f.role == "metric" and _FRACTION.search(line.text[f.start : f.end]) for f in numbers)
    if not numbers or not fractions or line.explicit != len(numbers):
        return False
    rest = line.text[line.body : numbers[0].start].replace(numbers[0].tag, "", 1).replace(line.context, "", 1)
    return _WORD.search(rest) is None and len(line.text) - line.body <= _LONGEST
