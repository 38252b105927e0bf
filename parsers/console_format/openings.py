"""A launch that says nothing of itself but what every launch of the program says first: the lines at the top of the log, once more.

Loggers append to the file of the launch before. What a program prints first (its arguments, its device, the model) it prints in each launch, with other
clocks, paths and numbers. Lines that come again soon are no opening: pycocotools says the same of each annotation file that it loads. One line of nothing but
settings is enough where it says among how many processes, or from which step, the launch begins: no loop counts these.
"""

from __future__ import annotations

from parsers.console_format.event_lines import Event
from parsers.console_format.line_prefix import Where
from parsers.console_format.measured import Measured
from parsers.console_format.printed_settings import only_pairs
from parsers.lazy_regex import lazy_re

MOST = 5  # lines of an opening; more of them differ by the settings that a launch changes
LEAST = 3  # bound: of them that come again; one line, or two, are of anything that the program does several times
REACH = 10  # lines within which it comes again: what measures may stand between lines that only look alike
SOON = 2  # times its length, within which an opening that comes again is what a loader says of each file
_LONGEST = 1000  # characters
FRONT = 8  # unit: characters
APART = 10.0  # seconds; bound: ranks of one job say a line within them, and a launch takes longer to import its libraries
UNSTARTED, _MOST_LAUNCHES = "unstarted", 200
SAYS = "the log begins again as at its top"
_OF_LAUNCH = lazy_re(
    r"(?i)(?:world_?size|n(?:um)?_?(?:gpus?|procs?|processes|ranks|nodes|devices)|nproc(?:_per_node)?|(?:start|resume|initial)_?(?:step|iter|iteration|epoch))"
)
_START = lazy_re(r"(?i)(?:start|resume|initial)_?(?:step|iter|iteration)")
_WORDS = lazy_re(r"[A-Za-z\u0080-\uffff]{2}")
_NUMBER = lazy_re(r"\d++")
_MINUTE = lazy_re(r"(?<!\d)\d\d:\d\d(?=:\d\d)")
_DAY = lazy_re(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b")


class Opening:
    """``again`` takes the lines of a log, without clock and logger: is it the one by which the log is seen to begin again? ``told``: the event."""

    def __init__(self) -> None:
        self._top: list[str] = []
        self._open = True
        self._ends = 0  # line at which the opening ends
        self._found: list[str] = []  # lines of the opening that came again
        self._first: tuple[Where, str, int | None] = (Where(0), "", None)
        self._line, self._says, self._others = "", "", 0  # the first line of the log, as it is, and the lines since it came last
        self._front = ""  # how it begins, before any number: few lines do, and each is looked at
        self._minute: list[str] = []  # the time of day that it names, to the minute
        self._opened = (Where(0), 0)  # where that was, and how many rows had been measured
        self._unstarted: list[Where] = []  # openings behind which nothing was measured
        self._alone = True  # every line of the log is like the first one
        self._headers: set[tuple[str, ...]] = set()  # keys of the lines of settings that say how a launch begins

    def header_again(self, where: Where, body: str, started: bool) -> list[tuple[str, object]]:
        """The settings of a line that stood above the first measurement and stands here again, of another launch; none of another line."""
        if ("=" not in body and ":" not in body) or len(body) > _LONGEST:
            return []
        pairs = only_pairs(body)
        keys = tuple(key for key, _ in pairs)
        if len(keys) < LEAST or not any(map(_OF_LAUNCH.fullmatch, keys)):
            return []
        if not started:
            self._headers.add(keys)
            return []
        self._first = where, body, next((v for k, v in pairs if _START.fullmatch(k) and isinstance(v, int) and v > 0), None)
        return pairs if keys in self._headers else []

    def _launches(self, where: Where, body: str, rows: int) -> None:
        """Counts the launches that measured nothing: between the first line of the log and that line once more no row came. ``rows``: measured and not
        written yet. Ranks say a line one behind the other, at one time."""
        if not self._line and _WORDS.search(body) is not None:
            self._line, self._says, self._opened, self._others = _like(body), body.strip()[:200], (where, rows), 0
            self._minute = _MINUTE.findall(body)
            self._front = _DAY.split(_NUMBER.split(body.lstrip(), 1)[0], 1)[0][:FRONT]
        elif not body.lstrip().startswith(self._front) or _like(body) != self._line:
            self._others, self._alone = self._others + 1, False
        else:
            at, before = self._opened
            later, self._minute = self._minute != _MINUTE.findall(body), _MINUTE.findall(body)
            apart = where.time - at.time if where.time is not None and at.time is not None else APART * (self._others > 0 or later)
            if apart >= APART:
                self._unstarted += [at] if rows == before else []
                self._opened, self._others = (where, rows), 0

    def unstarted(self, rows: int) -> list[tuple[Where, Event]]:
        """An event for each launch that measured nothing, where they are several: a line may come twice in one launch. One line alone, again and again,
        is a monitor's."""
        if self._alone:
            return []
        at, before = self._opened
        found = self._unstarted + ([at] if self._unstarted and rows == before else [])
        return [(w, Event(UNSTARTED, "info", self._says)) for w in found[:_MOST_LAUNCHES]] if len(found) >= LEAST else []

    def again(self, where: Where, body: str, measured: Measured, before: int) -> bool:
        """``before``: rows that were measured before this line; one that names a step or measures something is no opening."""
        counts, started = measured.size() > before or measured.now.line == where.line, measured.started
        if len(body) <= _LONGEST:
            self._launches(where, body, measured.size())
        if counts:
            self._open, self._found = False, []
            return False
        if (not self._open and len(self._top) < LEAST) or len(body) > _LONGEST or _WORDS.search(body) is None:
            return False
        if body.lstrip().startswith("|"):
            return False  # of a box, which measures where it closes
        if self._open:
            self._opens(where.line, _like(body))
            return False
        return self._seen(where, body, _like(body), started)

    def _opens(self, n: int, text: str) -> None:
        """Takes a line of the opening."""
        self._ends = n
        self._top += [text] if text not in self._top else []
        self._open = text == self._top[-1] and len(self._top) < MOST

    def _seen(self, where: Where, body: str, text: str, started: bool) -> bool:
        if text in self._top[:2] and (not self._found or text == self._top[0]):
            if where.line - self._ends < SOON * len(self._top):
                self._top = []  # said of each of several things
                return False
            self._first, self._found = (where, body, None), [text]
        elif self._found:
            if where.line - self._first[0].line > REACH:
                self._found = []
            elif text in self._top and text not in self._found:
                self._found.append(text)
                return started and len(self._found) == LEAST
        return False

    def told(self) -> tuple[Where, Event]:
        """The launch, at the first line of its opening."""
        where, body, step = self._first
        return where, Event("start" if step is None else "resume", "info", f"{SAYS}: {body.strip()[:200]}", step)


def forget(measured: Measured) -> None:
    """The launch prints its settings before it measures anything, and counts anew."""
    measured.before, measured.started, measured.dicts.count = measured.before or measured.started, False, 0
    measured.now.forget()


def _like(body: str) -> str:
    """A line without what differs from launch to launch."""
    return _DAY.sub("0", _NUMBER.sub("0", " ".join(body.split())))
