"""A log that is piped in: `forensics analyze -` reads standard input to its end, into a file that goes when the run does."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from forensics.errors import ForensicsError, WrongUsage

NAME = "-"  # the path that means it
STEM = "stdin"  # what its file and the outputs are called


def saved() -> tuple[Path, tempfile.TemporaryDirectory[str]]:
    """The file, and the folder that holds it as long as it is kept. Raises ForensicsError where nothing is piped in."""
    if sys.stdin is None or sys.stdin.isatty():
        raise WrongUsage(
            "`-` reads a log from standard input, and nothing is piped in", "For example: kubectl logs JOB | forensics analyze -"
        )
    keep = tempfile.TemporaryDirectory(prefix="forensics-")
    path = Path(keep.name) / STEM
    try:
        with path.open("wb") as f:
            shutil.copyfileobj(sys.stdin.buffer, f)
    except OSError as e:
        raise ForensicsError(f"standard input cannot be kept in {keep.name}: {e.strerror}", "TMPDIR names another place.") from e
    return path, keep
