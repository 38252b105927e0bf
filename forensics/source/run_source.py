"""The source that lies with a run: files beside the log and in a tracker's snapshot, new files of a patch, listings in a log."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from forensics.run.once import once
from forensics.source import all_looks
from forensics.source.answers import Answer
from forensics.source.parsed_module import Listing, Module, last, parse
from forensics.source.program import Program, programs
from parsers.console_format.event_lines import is_code
from parsers.lazy_regex import lazy_re
from parsers.runs.homes import home
from parsers.tables import Run, Source
from parsers.walk import is_regular

MOST_BYTES = 256 << 10  # of a file: the longest script of docs/source.md has 115 KiB, most have 5 to 30; a listing in a log begins it
MOST_FILES = 40  # a snapshot of a script with its helpers has some ten; in a whole repository no one can say which script ran
MOST_IN_ALL = 1 << 20  # bytes: a minute at worst, where all of it is one loop; a script takes 0.1 s
_SUFFIXES = (".py", ".ipynb", ".patch", ".diff")
# Where W&B, Sacred and scripts of the DARTS kind put copies of their source
_SNAPSHOTS = frozenset(["code", "codes", "_sources", "source", "src", "scripts", "snapshot", "code_snapshot", "source_code"])
_TRAINS = ("backward", "manual_backward", "fit", "train", "compile", "minimize")
_RULE = lazy_re(r"[=\-*#]{10,}\s*$")


@dataclass(frozen=True)
class Found:
    """What the looks at a run's source came to. `unread`: 'train.py: line 3 is not Python 3'."""

    files: tuple[str, ...]
    answers: dict[str, Answer]
    unread: tuple[str, ...]
    scripts: int = 1


@once
def looked_at(run: Run) -> Found:
    """Each look at the scripts of a run that train something; of several, what they agree on."""
    modules: list[Module] = []
    unread = []
    for listing in listings(run):
        parsed = parse(listing)
        if isinstance(parsed, Module):
            modules.append(parsed)
        else:
            unread.append(f"{listing.path}: {parsed}")
    scripts = [p for p in programs(modules) if _trains(p)]
    each = [all_looks.looked(p) for p in scripts]
    answers = {name: all_looks.agreed([e[name] for e in each]) for name in all_looks.LOOKS} if each else {}
    files = tuple(dict.fromkeys(m.listing.path for p in scripts for m in p.modules))
    return Found(files, answers, tuple(unread), len(scripts))


def _trains(program: Program) -> bool:
    return any(last(c.name) in _TRAINS for c in program.calls)


def listings(run: Run) -> Iterator[Listing]:
    """Every piece of source of a run, within the limits; of a listing in a log the text alone. Files come before logs."""
    found, left = 0, MOST_IN_ALL
    logs = [s for s in run.sources if s.format == "console"]
    for s in [*_files(run), *logs]:
        size = min(s.bytes, MOST_BYTES) if s.format == "console" else s.bytes
        path = run.file(s.path)
        if size > min(MOST_BYTES, left) or not is_regular(path):
            continue
        raw = _head(path)
        for listing in _of(s.path, raw, log=s.format == "console"):
            found, left = found + 1, left - len(listing.text)
            if found > MOST_FILES:
                return
            yield listing


def _head(path: Path) -> str:
    try:
        with path.open("rb") as f:
            raw = f.read(MOST_BYTES)
    except OSError:
        return ""
    return raw.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")


def _files(run: Run) -> list[Source]:
    """Source files beside what this run logged, or in a snapshot there; those of libraries or of other runs are not."""
    logged = {home(s.path) for s in run.sources if s.claimed and s.records}
    return [s for s in run.sources if PurePosixPath(s.path).suffix.lower() in _SUFFIXES and _home(s.path) in logged]


def _home(path: str) -> str:
    """The folder of the run that a source file lies in: above the snapshot, where it is in one."""
    parts = PurePosixPath(path).parts
    at = next((i for i, part in enumerate(parts[:-1]) if part in _SNAPSHOTS), None)
    return home(path if at is None else "/".join([*parts[:at], parts[-1]]))


def _of(path: str, text: str, *, log: bool) -> Iterator[Listing]:
    suffix = PurePosixPath(path).suffix.lower()
    if log:
        yield from _listed(path, text)
    elif suffix == ".ipynb":
        yield from _notebook(path, text)
    elif suffix == ".py":
        yield Listing(path, text)
    else:
        yield from _new_files(path, text)


def _listed(path: str, text: str) -> Iterator[Listing]:
    """The source that a log begins with, as those of modded-nanogpt: up to a line of dashes where what went before parses."""
    lines = text.split("\n")
    start = next(
        (i for i, line in enumerate(lines[:100]) if re.match(r"(import|from) \w|def \w|class \w", line) and is_code(line, True)), None
    )
    if start is None:
        return
    ends = [i for i, line in enumerate(lines) if i > start and _RULE.match(line) and not line.startswith("#")]
    for end in ends[:3]:  # a line of dashes in a docstring is none that ends the source
        listing = Listing(path, "\n".join(lines[start:end]), start + 1)
        if isinstance(parse(listing), Module):
            yield listing
            return


def _notebook(path: str, text: str) -> Iterator[Listing]:
    """The code of a notebook as one text. Lines are counted in that text, and commands of the shell are left out."""
    try:
        cells = json.loads(text)["cells"]
        code = [c["source"] for c in cells if c.get("cell_type") == "code"]
        parts = ["".join(c) if isinstance(c, list) else str(c) for c in code]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return
    if parts:
        yield Listing(path, re.sub(r"(?m)^([ \t]*+)[%!].*$", r"\1pass", "\n".join(parts)))


def _new_files(path: str, text: str) -> Iterator[Listing]:
    """The files that a patch adds whole; what it changes is not whole here."""
    for part in re.split(r"(?m)^diff --git ", text)[1:]:
        if "\n--- /dev/null\n" not in part or ".py\n" not in part:
            continue
        head, _, body = part.partition("\n@@ ")
        name = next((line[6:] for line in head.split("\n") if line.startswith("+++ b/")), "")
        lines = [line[1:] for line in body.split("\n")[1:] if line.startswith("+")]
        if name.endswith(".py"):
            yield Listing(f"{path}: {name}", "\n".join(lines))
