"""Reads experiments that DVC keeps in git: ``.git/refs/exps/<2>/<38>/<name>``, of which the workspace shows the last one only.

The ref names a commit; the tables, settings and summary below its ``dvclive`` folder are unpacked into a temporary folder and read as they are in a workspace
(:mod:`parsers.records.git_objects`: git is never run). Experiments whose objects git has packed are told, with the command that unpacks them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path, PurePosixPath

import pyarrow as pa

from parsers.formats import config_file, csv_log
from parsers.lazy_regex import lazy_re
from parsers.records import git_objects
from parsers.tables import Gap, Note

AT = "line"
_REF = lazy_re(rb"([0-9a-f]{40,64})\s*")


def claims(path: Path, head: bytes) -> bool:
    return _git(path) is not None and _REF.fullmatch(head) is not None


def parse(path: Path) -> Iterator[pa.RecordBatch | Gap | Note]:
    """``at`` counts the lines of each file of the experiment."""
    git, commit = _git(path), path.read_bytes()[:64].strip().decode("ascii", "replace")
    if git is None:
        return
    try:
        found = [
            (name, git_objects.content(git, blob, "blob")) for name, blob in git_objects.files(git, commit) if _wanted(PurePosixPath(name))
        ]
    except git_objects.Missing:
        yield Gap("byte 0", f"an experiment whose objects git has packed: `git archive {commit[:12]} | tar x -C FOLDER` unpacks it", None)
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, data in found:
            parts = [p for p in PurePosixPath(name).parts if p not in ("..", "/")]
            to = Path(folder).joinpath(*parts)
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_bytes(data)
            yield from (csv_log if to.suffix == ".tsv" else config_file).parse(to)
    yield Note(f"{len(found)} files of commit {commit[:12]}")


def _git(path: Path) -> Path | None:
    """The .git folder that a ref of an experiment lies in."""
    parents = path.parents
    inside = len(parents) > 4 and [p.name for p in parents[2:5]] == ["exps", "refs", ".git"]
    return parents[4] if inside else None


def _wanted(path: PurePosixPath) -> bool:
    """A table of a metric, or the settings."""
    return path.name == "params.yaml" or (path.suffix == ".tsv" and ("plots", "metrics") in pairwise(path.parts))
