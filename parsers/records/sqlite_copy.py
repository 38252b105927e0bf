"""A SQLite database of somebody else: opened as a copy, trusted in nothing, read on behind damage. Helpers, no parser."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from parsers.tables import Gap

_MOST_DAMAGES = 200  # places of a table behind which reading goes on
_MOST_TICKS = 50_000  # of 100 000 steps of SQLite's machine each: a minute or two, some hundred million rows


@contextmanager
def copied(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a copy of a database, its write-ahead log included; both are gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="forensics-") as folder:
        copy = Path(folder) / "copy.db"
        shutil.copyfile(path, copy)
        for suffix in ("-wal", "-journal"):
            if beside(path, suffix).is_file():
                shutil.copyfile(beside(path, suffix), beside(copy, suffix))
        with closing(sqlite3.connect(copy)) as database:
            database.text_factory = lambda b: b.decode("utf-8", "replace")
            distrust(database)
            yield database


def distrust(database: sqlite3.Connection) -> None:
    """The schema is somebody else's: it may call no function that does anything, and no query may run for ever."""
    database.execute("PRAGMA trusted_schema=OFF")
    database.execute("PRAGMA cell_size_check=ON")
    ticks = iter(range(_MOST_TICKS))
    database.set_progress_handler(lambda: next(ticks, None) is None, 100_000)


def columns_of(database: sqlite3.Connection, table: str) -> set[str]:
    """Of a table; what a view would answer, nobody logged."""
    if not database.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", [table]).fetchone():
        return set()
    return {row[1] for row in database.execute(f"PRAGMA table_info({table})")}


def beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def walk(database: sqlite3.Connection, table: str, wanted: str, gaps: list[Gap]) -> Iterator[tuple[Any, ...]]:
    """Rows (row id first) in the order of writing. Behind a damaged page, reading goes on at the next readable row."""
    query = f"SELECT rowid, {wanted} FROM {table} WHERE rowid > ? ORDER BY rowid"
    last = 0
    for _ in range(_MOST_DAMAGES):
        try:
            with closing(database.execute(query, [last])) as cursor:
                for row in cursor:
                    if row[0] <= last:  # a torn tree may lead back to where it was, for ever
                        raise sqlite3.DatabaseError("its rows are out of order")
                    last = row[0]
                    yield row
            return
        except sqlite3.DatabaseError as e:
            found = _next_readable(database, table, last)
            what = f"{table}: {str(e)[:100]}"
            if found is None or found <= last:
                gaps.append(Gap(f"row {last}", f"{what}; no rows behind it can be read", None))
                return
            gaps.append(Gap(f"row {last}", f"{what}; read on from row {found}", found - last - 1))
            last = found - 1
    gaps.append(Gap(f"row {last}", f"{table}: damaged in more than {_MOST_DAMAGES} places; the rest is not read", None))


def _next_readable(database: sqlite3.Connection, table: str, last: int) -> int | None:
    """The first row id behind a damage from which on reading works again."""

    def row_behind(jump: int) -> int | None:
        try:
            row = database.execute(f"SELECT rowid, * FROM {table} WHERE rowid > ? ORDER BY rowid LIMIT 1", [last + jump]).fetchone()
            return None if row is None else int(row[0])
        except sqlite3.DatabaseError:
            return None

    works = next((1 << n for n in range(40) if row_behind(1 << n) is not None), None)
    if works is None:
        return None
    fails = works // 2
    while works - fails > 1:
        middle = (works + fails) // 2
        works, fails = (middle, fails) if row_behind(middle) is not None else (works, middle)
    return row_behind(works)
