"""The training table in numbers: benchmarks/fit/signs.csv as arrays, and the class that each row should be given."""

from __future__ import annotations

import csv
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fit.corpora import COLUMNS
from fit.model import Structure
from forensics.causes.files import NOTHING, UNKNOWN, Cause, causes
from forensics.causes.weigh import UNEXPLAINED

TABLE = Path(__file__).resolve().parent / "signs.csv"
VALUE = {"+": 1.0, "-": -1.0, "": 0.0}


@dataclass(frozen=True)
class Table:
    """`X`: (rows, columns): the signs (1 seen, -1 absent, 0 cannot tell), then a column a cause: 1 where it leaves a critical finding
    unexplained. `target`: the class to answer. `sick`: the runs called unhealthy: of the others no cause is told above 50 %, so the
    weights are learned from these alone, and hold for them."""

    rows: list[dict[str, str]]
    columns: list[str]
    X: NDArray[np.float64]
    target: NDArray[np.str_]
    family: NDArray[np.str_]
    weight: NDArray[np.float64]
    sick: NDArray[np.bool_]


def read(path: Path = TABLE) -> Table:
    with path.open(newline="", encoding="utf-8") as f:
        rows = list(csv.DictReader(f))
    signs = [column for column in rows[0] if column not in COLUMNS]
    left = [[float(c in r["unexplained"].split(";")) for c in causes()] for r in rows]
    X = np.hstack([np.array([[VALUE[r[s]] for s in signs] for r in rows]), np.array(left)])
    rows_of = Counter((r["corpus"], r["run"]) for r in rows)  # corpora are numbered one by one
    runs_in = Counter(r["family"] for r in rows if not r["copy"])
    # a run counts once, however many copies of it there are; a family counts as the root of its runs, which are not independent
    weight = np.array([1 / rows_of[r["corpus"], r["run"]] / np.sqrt(runs_in[r["family"]]) for r in rows])
    columns = [*signs, *(f"{UNEXPLAINED}:{c}" for c in causes())]
    seen = [{columns[j] for j in np.flatnonzero(x > 0)} for x in X]
    target = np.array([_target(r, there) for r, there in zip(rows, seen, strict=True)])
    sick = np.array([r["verdict"] == "unhealthy" for r in rows])
    return Table(rows, columns, X, target, np.array([r["family"] for r in rows]), weight, sick)


def classes() -> list[str]:
    return [*causes(), UNKNOWN]


def accepted(row: dict[str, str]) -> set[str]:
    """The causes that are right for a run, or that a careful reader would let pass; ``unknown`` where the truth lets it pass."""
    return {row["cause"]} - {NOTHING, UNKNOWN} | set(row["near"].split(";")) - {""}


def effect_seen(table: Table, i: int, cause: str) -> bool:
    return _explains(cause, {table.columns[j] for j in np.flatnonzero(table.X[i] > 0)})


def _target(row: dict[str, str], seen: set[str]) -> str:
    """The cause of a row where an effect of it was seen, else one that passes as well, else `unknown`."""
    if row["cause"] == NOTHING:
        return NOTHING
    known = [c for c in (row["cause"], *row["near"].split(";")) if c in causes()]
    return next((c for c in known if _explains(c, seen)), UNKNOWN)


def _explains(cause: str, seen: set[str]) -> bool:
    return any(effect.among(seen) for effect in causes()[cause].explains)


def structure(table: Table) -> dict[str, Structure]:
    """What each class may use, as columns of the table; a sign that is newer than the table has none, and no effect rests on it."""
    at = {name: i for i, name in enumerate(table.columns)}

    def of(c: Cause) -> Structure:
        against = c.against if c.id == NOTHING else (*c.against, f"{UNEXPLAINED}:{c.id}")
        known = [e for e in c.explains if set(e.signs) <= at.keys()]
        explains = tuple((tuple(at[n] for n in e.signs), tuple(at[n] for n in e.unless if n in at)) for e in known)
        return Structure(tuple(at[n] for n in c.for_ if n in at), tuple(at[n] for n in against if n in at), explains)

    return {c.id: of(c) for c in causes().values()} | {UNKNOWN: Structure((), ())}
