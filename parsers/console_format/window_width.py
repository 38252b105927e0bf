"""Lines that a window broke: what a program says on stderr, PowerShell's ``2>`` and ``*>`` write as error records, each broken at the width of the
window. ``At line:1 char:1`` stands in the first of them, and its own lines show the width.
"""

from __future__ import annotations

from parsers.lazy_regex import lazy_re

_RECORD = lazy_re(r"At line:\d+ char:\d+\r?$")
_LEAST = 15  # characters; bound: no window is as narrow
_BROKEN = 2  # bound: lines of one length that are the longest of the record; one may be so by chance


def _width(lines: list[str]) -> tuple[int, int]:
    """(line from which on lines are broken, characters at which they are); (0, 0) where none are."""
    at = next((i for i, line in enumerate(lines) if _RECORD.match(line)), None)
    if at is None:
        return 0, 0
    end = next((i for i in range(at, len(lines)) if not lines[i].strip()), len(lines))
    record = [len(line.rstrip("\r")) for line in lines[at:end]]
    widest = max(record)
    return (at, widest) if widest >= _LEAST and record.count(widest) >= _BROKEN else (0, 0)


def unbroken(lines: list[str]) -> list[str]:
    """As many lines, of which each that was broken stands whole where it began, and nothing where it went on."""
    begin, widest = _width(lines)
    if not widest:
        return lines
    found, whole = [*lines[:begin]], 0
    before: str | None = None
    for line in (line.rstrip("\r") for line in lines[begin:]):
        if before is not None and _goes_on(before, line, widest):
            found[whole] += line
            found.append("")
        else:
            whole = len(found)
            found.append(line)
        before = line
    return found


def _goes_on(line: str, following: str, widest: int) -> bool:
    """Was the line broken at the width, or at a space before a word that did not fit?"""
    word = following.split(" ", 1)[0]
    return len(line) == widest or (line.endswith(" ") and word != "" and len(line) + len(word) > widest)
