"""The lines of a run's text files that may say names: a prompt above the first step is no event, but it tells who the folder is named after."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from parsers.walk import is_regular

HEAD, TAIL = 1 << 18, 1 << 16  # bytes: jobs say who and where at the start, schedulers at the end
FILES = 64  # of a run; ranks that each have a log say the same
ALIKE = 16  # lines that differ in numbers only, such as those of every step
LONGEST = 2000  # characters of a line


def lines(paths: Iterable[Path]) -> Iterator[str]:
    """Distinct lines of those files that are text; nothing else is opened, and what cannot be read says no names."""
    for _, path in zip(range(FILES), paths, strict=False):
        seen: Counter[str] = Counter()
        for line in dict.fromkeys(_text(path).splitlines()):
            shape = re.sub(r"\d+(?:\.\d+)?", "0", line[:LONGEST])
            seen[shape] += 1
            if seen[shape] <= ALIKE:
                yield line[:LONGEST]


def _text(path: Path) -> str:
    try:
        if not is_regular(path, links=False):
            return ""
        with path.open("rb") as f:
            data = f.read(HEAD)
            if (size := os.fstat(f.fileno()).st_size) > HEAD:
                f.seek(max(size - TAIL, HEAD))
                data += b"\n" + f.read(TAIL)
    except OSError:
        return ""
    return "" if b"\0" in data[:8192] else data.decode("utf-8", "replace")
