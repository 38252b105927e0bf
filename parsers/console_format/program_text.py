"""Source code that a log quotes: where it begins, and until where lines may be of it."""

from __future__ import annotations

from collections import deque

from parsers.console_format.event_lines import is_code
from parsers.lazy_regex import lazy_re

_WARNED = lazy_re(r"[^\s:]+\.py:\d+: [A-Z]\w*Warning\b|[A-Z]:\\[^:]+\.py:\d+: [A-Z]\w*Warning\b")
_QUOTES = 3  # unit: lines; the words of a warning may fill some before the line that it quotes


class ProgramText:
    def __init__(self) -> None:
        self._lines: deque[int] = deque(maxlen=3)  # last ones that were Python
        self._warned = -_QUOTES - 1  # the last line with a warning of Python's, which quotes a line of its program

    def quotes(self, n: int, text: str, stamped: bool) -> bool:
        """Whether a line is source code; three such lines close together begin a listing, and one that a logger stamped with the time ends it."""
        if stamped:
            self._lines.clear()
            return False
        quoted, self._warned = n - self._warned <= _QUOTES, n if _WARNED.match(text) is not None else self._warned
        if is_code(text, sure=True):
            if not quoted:
                self._lines.append(n)
            return True
        return self.listing(n) and (text[:1] in " \t#\"'" or is_code(text))

    def listing(self, n: int) -> bool:
        return len(self._lines) == 3 and n - self._lines[0] <= 80 and n - self._lines[-1] <= 40
