"""The last lines of the text logs of a run that could not be judged: what somebody would look at first."""

from __future__ import annotations

from typing import Any

from parsers import secrets
from parsers.tables import Run
from parsers.walk import is_regular

FILES, LINES = 3, 3  # unit: logs that are quoted, lines of each; they share one screen with what the run left
TAIL = 1 << 14  # unit: bytes at the end of a log
WIDEST = 300  # unit: characters of a line


def last_lines(run: Run) -> list[dict[str, Any]]:
    """``{"path", "lines"}`` of each console log, secrets masked; a log that cannot be read is left out, its gap is told already."""
    found = []
    for s in [s for s in run.sources if s.format == "console"][:FILES]:
        path = run.file(s.path)
        try:
            if not is_regular(path):
                continue
            with path.open("rb") as f:
                f.seek(max(path.stat().st_size - TAIL, 0))
                text = f.read(TAIL).decode("utf-8", "replace")
        except OSError:
            continue
        lines = [line.strip() for line in text.splitlines() if line.strip()][-LINES:]
        if lines:
            found.append({"path": s.path, "lines": [line[:WIDEST] for line in secrets.mask_texts(lines)]})
    return found
