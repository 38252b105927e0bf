"""A log that was copied off a terminal (tmux, screen, a window's text): lines that were too long for it stand in several lines of its full width.

What shows it is words: one that breaks off at the edge and goes on in the line below stands whole elsewhere. Logs whose lines are all of one length
have no such words, for what begins the line below belongs to no word above. Empty lines stand where lines were joined, so that all keep their numbers.
"""

from __future__ import annotations

from collections import Counter

from parsers.console_format.line_prefix import prefix
from parsers.lazy_regex import lazy_re

_LOOKED_AT = 1 << 18  # characters by which it shows
_NARROWEST, _WIDEST = 40, 500  # columns that a terminal has (bounds)
_MOST_AT_EDGE = 8  # lines of the full width, with which it is worth to look for words
_BROKEN = 3  # words that break off at the edge: one or two may be of chance
_BLANKS = 2  # at the end of a line, which a terminal's text leaves out
_END, _BEGIN = lazy_re(r"[\w./-]{1,60}$"), lazy_re(r"[\w./-]{1,60}")
_WORD = lazy_re(r"[\w./-]{4,120}")
_LETTER = lazy_re(r"[A-Za-z]")


def width(text: str) -> int:
    """Columns of the terminal that a text was copied from; 0 where it is the log itself."""
    lines = text[:_LOOKED_AT].split("\n")
    longest = max(map(len, lines), default=0)
    if not _NARROWEST <= longest <= _WIDEST or "\r" in text[:_LOOKED_AT]:
        return 0
    edge = [i for i in range(len(lines) - 1) if len(lines[i]) == longest]
    if len(edge) < _MOST_AT_EDGE:
        return 0
    whole = Counter(w for line in lines for w in _WORD.findall(line))
    return longest if len({w for i in edge if whole[w := _across(lines[i], lines[i + 1])]}) >= _BROKEN else 0


def _across(above: str, below: str) -> str:
    """The word that goes on in the line below; nothing where none does."""
    end, begin = _END.search(above[-60:]), _BEGIN.match(below)
    word = f"{end[0]}{begin[0]}" if end is not None and begin is not None else ""
    return word if _LETTER.search(word) else ""


def joined(text: str, columns: int) -> str:
    """The text with each line as it was before the terminal broke it."""
    found: list[str] = []
    open_, breaks = False, 0  # the line above goes on; line ends since it began
    for line in text.split("\n"):
        if open_ and line and not _begins(line):
            found[-1] += line
            breaks += 1
        else:
            found += [""] * breaks
            found.append(line)
            breaks = 0
        short = columns - len(line)
        open_ = short == 0 or (0 < short <= _BLANKS and ((open_ and breaks > 0) or _begins(line)))
        if open_:
            found[-1] += " " * short
    return "\n".join([*found, *[""] * breaks])


def _begins(line: str) -> bool:
    """Does a line begin with its clock or its rank, as the first of a message does?"""
    return any(f.role in {"time", "rank"} for f in prefix(line).fields)
