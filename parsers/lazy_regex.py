"""Regular expressions that are compiled when they are first used.

The package holds some 700 of them; a run of one kind of file needs a third, and compiling all took a fifth of the CPU time of a small run.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class LazyRegex:
    """Behaves as the compiled expression does; an error in the expression is raised by the first use, not by the import."""

    def __init__(self, text: Any, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        """Reached once for each method: the bound method of the compiled expression stays as an attribute."""
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self.compiled(), name)
        setattr(self, name, found)
        return found

    def compiled(self) -> re.Pattern[Any]:
        return re.compile(self._text, self._flags)


def lazy_re(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """As `re.compile`, later."""
    return cast("re.Pattern[AnyStr]", LazyRegex(text, flags))
