"""Runs of trackio by name: ``trackio:project`` and ``trackio:project/run``, out of its local store, each as a database of its own.

The store is TRACKIO_DIR, else ``trackio`` below HF_HOME; a project is a file ``<project>.db`` there. A trackio server is not asked: over
HTTP it gives NaN and infinities as null, and these are what one looks for.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from forensics.errors import ForensicsError
from forensics.services import Found
from parsers.records.sqlite_copy import columns_of, copied

_TABLES = ("metrics", "system_metrics", "configs", "alerts")


def claims(text: str) -> bool:
    return text.startswith("trackio:")


def runs(text: str) -> Iterator[Found]:
    """Of a project all, in the order in which they began; or the one that is named."""
    project, _, wanted = text.removeprefix("trackio:").strip("/").partition("/")
    path = _store() / f"{_canonical(project)}.db"
    if not path.is_file():
        raise ForensicsError(
            f"there is no project {project} in trackio's store {_store()}",
            "TRACKIO_DIR names another store; of a server, give the .db file.",
        )
    try:
        with copied(path) as database:
            found = database.execute("SELECT run_name, COUNT(*), MAX(id), MIN(id) FROM metrics GROUP BY run_name ORDER BY 4").fetchall()
    except sqlite3.Error as e:
        raise ForensicsError(f"{path} cannot be read: {e}", "Is it a database of trackio?") from e
    named = [row for row in found if not wanted or row[0] == wanted]
    if not named:
        known = ", ".join(str(row[0]) for row in found[:30])
        raise ForensicsError(f"no run {wanted} in trackio:{project}", f"Its runs: {known}" if known else "It has none.")
    for name, count, last, _ in named:
        place = ("trackio", str(_store()), project)
        yield Found(str(name), f"trackio:{project}/{name}", place, f"{count} {last}", partial(_fetch, path, str(name)))


def _store() -> Path:
    if named := os.environ.get("TRACKIO_DIR"):
        return Path(named)
    return Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface") / "trackio"


def _canonical(project: str) -> str:
    """As trackio names the file of a project."""
    return re.sub(r"[^A-Za-z0-9_\-]", "", project) or "default"


def _fetch(path: Path, run: str, into: Path) -> None:
    target = into / "run.db"
    target.unlink(missing_ok=True)
    with copied(path) as database, closing(sqlite3.connect(target)) as own, own:
        for table in _TABLES:
            columns = sorted(columns_of(database, table))
            if "run_name" not in columns:
                continue
            names = ", ".join(f'"{c}"' for c in columns)
            rows = database.execute(f"SELECT {names} FROM {table} WHERE run_name = ? ORDER BY rowid", [run])
            own.execute(f"CREATE TABLE {table} ({names})")
            own.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(columns))})", rows)
