"""Frames that a program printed when a value overflowed: the first module whose output is not finite, and what went into it.

transformers' DebugUnderflowOverflow prints the last forward frames after "Detected inf/nan during batch_number=...": a line with the
module and its class, then the smallest and largest size of its weights, inputs and outputs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from forensics.run import endings
from forensics.run.once import once
from parsers import secrets
from parsers.lazy_regex import lazy_re
from parsers.tables import Run
from parsers.walk import is_regular

_BEGIN = lazy_re(r"Detected inf/nan during batch_number=(\d+)")
_MODULE = lazy_re(r"(?:^|\s)([\w.\[\]]+) (\w+)\s*$")
_VALUES = lazy_re(r"(?:^|\s)([\d.]+e[+-]\d+|inf|nan) +([\d.]+e[+-]\d+|inf|nan) (\w[\w\[\].]*)\s*$", re.I)
LINES = 4000  # bound: 21 frames are printed, of at most some hundred tensors each
SIZE = 64 * 1024 * 1024  # bytes of a log that is read again; bound: a log of a long job
SHOWN = 12  # lines of a frame that are shown


@dataclass(frozen=True)
class Frame:
    """The module in which it began; `largest`: of its inputs, None where these were not finite already."""

    module: str
    kind: str
    largest: float | None
    where: str
    lines: tuple[str, ...]

    @property
    def says(self) -> str:
        of = "what goes in is not finite already" if self.largest is None else f"its inputs are at most {self.largest:.3g}"
        return f"The frames that were printed name {self.module} ({self.kind}) as the first module whose output is not finite; {of}"


@once
def first_bad(run: Run) -> Frame | None:
    """The first frame whose output is not finite, of the first such print that has one."""
    for e in endings.events(run, "nonfinite"):
        path = run.file(str(e["source"]))
        if e["at"] is None or not _BEGIN.search(str(e["text"])) or not is_regular(path) or path.stat().st_size > SIZE:
            continue
        frame = _read(
            path.read_text("utf-8", "replace").splitlines()[int(e["at"]) : int(e["at"]) + LINES], int(e["at"]), run, str(e["source"])
        )
        if frame is not None:
            return frame
    return None


def _read(lines: list[str], before: int, run: Run, source: str) -> Frame | None:
    module, start, inputs = None, 0, 0.0
    for i, line in enumerate(lines):
        values = _VALUES.search(line)
        if values is None:
            named = _MODULE.search(line)
            module, start, inputs = ((named[1], named[2]), i, 0.0) if named and not _BEGIN.search(line) else (module, start, inputs)
            continue
        largest = float(values[2])
        finite = largest < float("inf")
        if values[3].lower().startswith("input"):
            inputs = max(inputs, largest) if finite and inputs == inputs else float("nan")
        elif values[3].lower().startswith("output") and not finite and module is not None:
            shown = tuple(secrets.mask_text(x.strip()) for x in lines[start : i + 1][-SHOWN:])
            return Frame(*module, inputs if inputs == inputs else None, run.where(source, before + start + 1), shown)
    return None


def do(run: Run) -> tuple[str, ...]:
    """What to do first where frames were printed."""
    frame = first_bad(run)
    return (f"Look at {frame.module} first: {frame.says[0].lower()}{frame.says[1:]} ({frame.where}).",) if frame is not None else ()
