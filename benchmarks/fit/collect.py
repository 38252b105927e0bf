"""Writes the training table: the signs of every run with a known cause. `python benchmarks/fit/collect.py [--corpus NAME=DIR ...] [--copies N]`.

A row is a run, or a copy of it that was logged otherwise (benchmarks/relog.py). Columns: ``corpus``, ``family``, ``run`` (a number), ``copy``,
``cause`` (what is right first), ``near`` (what else passes), ``identifiable``, ``verdict`` (what the detectors came to), ``unexplained`` (the
causes that leave a critical finding unexplained), then one column a sign: ``+`` seen, ``-`` absent, nothing where the run cannot tell.
There are no paths in it, and no names of runs but those of samples. A corpus that is not at hand keeps the rows it has: a sign that is
newer than they are cannot be told there.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from joblib import Parallel, delayed

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent)]

import relog  # noqa: E402
from relogging import original  # noqa: E402

import forensics  # noqa: E402
from fit import corpora  # noqa: E402
from forensics import pipeline  # noqa: E402
from forensics.case_parts import headline  # noqa: E402
from forensics.causes.files import causes  # noqa: E402
from forensics.causes.weigh import unexplained  # noqa: E402
from forensics.errors import ForensicsError  # noqa: E402
from forensics.signs.sign import ABSENT, SEEN, looks  # noqa: E402
from parsers.tables import Run  # noqa: E402

TABLE = HERE / "signs.csv"
OPEN = HERE.parents[2] / "shared" / "open"
CORPORA = {"samples": HERE.parents[1] / "samples", "zoo": OPEN / "zoo", "another maker": OPEN / "zoo2", "real runs": OPEN}
MARK = {SEEN: "+", ABSENT: "-"}


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--corpus", action="append", default=[], metavar="NAME=DIR", help="more corpora than samples/ and the open sets")
    ap.add_argument("--copies", type=int, default=1, help="relogged copies a run")
    ap.add_argument("--jobs", type=int, default=2)
    ap.add_argument("--out", type=Path, default=TABLE)
    a = ap.parse_args()
    folders = CORPORA | {name: Path(folder) for name, _, folder in (c.partition("=") for c in a.corpus)}
    truths = [t for name, folder in folders.items() if folder.is_dir() for t in corpora.read(folder, name)]
    rows = Parallel(n_jobs=a.jobs, verbose=1)(delayed(_rows_of)(t, i, a.copies) for i, t in enumerate(truths))
    kept = [r for r in _rows_of_table(a.out) if r["corpus"] not in {t.corpus for t in truths}]
    with a.out.open("w", newline="", encoding="utf-8") as f:
        table = csv.DictWriter(f, [*corpora.COLUMNS, *looks()], restval="", extrasaction="ignore", lineterminator="\n")
        table.writeheader()
        table.writerows(row for found in rows for row in found)
        table.writerows(kept)
    print(
        f"{sum(map(bool, rows))} of {len(truths)} runs, {sum(map(len, rows))} rows, {len(looks())} signs: {a.out.name}; {len(kept)} rows kept"
    )


def _rows_of_table(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


def _rows_of(t: corpora.Truth, number: int, copies: int) -> list[dict[str, str]]:
    try:
        return list(_rows(t, number, copies))
    except Exception as e:  # a run that cannot be read costs itself
        print(f"{t.id}: {type(e).__name__}: {e}", file=sys.stderr)
        return []


def _rows(t: corpora.Truth, number: int, copies: int) -> Iterator[dict[str, str]]:
    """The row of a run, and those of some of its copies: which ones is drawn by its number."""
    with tempfile.TemporaryDirectory() as folder:
        path = original.plain_copy(t.path, Path(folder) / "run") if (t.path / "expect.toml").exists() else t.path
        first = _row(t, number, "", path)
        if first is None:
            return
        yield first
        for kind in random.Random(number).sample(sorted(relog.TRANSFORMATIONS), copies):
            try:
                copy = relog.relogged(path, Path(folder) / kind, kind, t.last)
            except Exception as e:  # a copy that cannot be made costs itself
                print(f"{t.id} {kind}: {type(e).__name__}: {e}", file=sys.stderr)
                continue
            row = _row(t, number, kind, copy) if copy is not None else None
            if row is not None:
                yield row


def _row(t: corpora.Truth, number: int, copy: str, path: Path) -> dict[str, str] | None:
    try:
        run = forensics.read(str(path))
    except ForensicsError as e:
        print(f"{t.id} {copy}: {e}", file=sys.stderr)
        return None
    return _facts(t, number, copy, run)


def _facts(t: corpora.Truth, number: int, copy: str, run: Run) -> dict[str, str]:
    findings, checks, signs = pipeline.examined(run)
    left = [c.id for c in causes().values() if unexplained(c, signs, findings)]
    told = [t.corpus, t.family, str(number), copy, t.target, ";".join(sorted(t.near)), "yes" if t.identifiable else "no"]
    told += [headline.verdict(run, findings, checks), ";".join(left)]
    return dict(zip(corpora.COLUMNS, told, strict=True)) | {name: MARK.get(sign.state, "") for name, sign in signs.items()}


if __name__ == "__main__":
    main()
