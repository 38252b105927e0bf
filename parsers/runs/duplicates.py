"""Leaves out metric rows that another file of the same run says too.

Two *formats* (TensorBoard and a console log, say) are two witnesses of one run: a row is a copy when a better witness
has the same metric, step and float32 value. Files of one format are successive attempts of the run, and equal rows in them
are work done twice, so they stay; except where one file is contained in another (the cumulative ``trainer_state.json``
of every checkpoint, a backup): that is a copy, too. A value that a log rounded differs and stays.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa

from parsers import arrow

if TYPE_CHECKING:
    import polars as pl

# Better witnesses first: exact values with a clock, then exact values, then what was printed for people.
_PRECISION = [
    "tensorboard",
    "wandb_offline",
    "mlflow_sqlite",
    "mlflow_files",
    "jsonl",
    "parquet_log",
    "trainer_state",
    "csv_log",
    "json_log",
    "wandb_folder",
]
_CONTAINED = 0.9  # share of a file's rows found in a sibling from which on it is a copy of that sibling


def drop_copies(metrics: pa.Table, formats: dict[str, str]) -> tuple[pa.Table, int]:
    """The table without copies, order kept, and how many rows were left out."""
    if len(arrow.words(metrics["source"])) < 2:
        return metrics, 0
    import polars as pl

    rows = _keyed(metrics, formats)
    witnesses = rows.group_by("key").agg(pl.col("source").n_unique())
    shared = witnesses.filter(pl.col("source") > 1)["key"]
    if not len(shared):
        return metrics, 0
    rows = rows.filter(pl.col("key").is_in(shared.implode()))
    copies = _contained_files(rows)
    copies |= _second_witnesses(rows.filter(~pl.col("row").is_in(list(copies))))
    if not copies:
        return metrics, 0
    keep = pl.Series([True] * metrics.num_rows).scatter(sorted(copies), False)
    return metrics.filter(keep.to_arrow()), len(copies)


def key(name: str) -> str:
    """What two files must agree on to speak of the same metric: the canonical name, else the tag without its punctuation."""
    return re.sub(r"[\s._:/\\-]+", "/", name.lower()) if name.startswith("other/") else name


def _keyed(metrics: pa.Table, formats: dict[str, str]) -> pl.DataFrame:
    import polars as pl

    rows = pl.DataFrame(metrics.select(["step", "name", "value", "time", "source", "rank"])).with_row_index("row")
    rows = rows.with_columns(pl.col("name", "source").cast(pl.String))
    known = sorted(set(formats.values()), key=lambda f: (_PRECISION.index(f) if f in _PRECISION else len(_PRECISION), f))
    by_source = {s: known.index(formats[s]) for s in rows["source"].unique()}
    names = {n: key(n) for n in rows["name"].unique()}
    return rows.with_columns(
        pl.col("name").replace_strict(names, return_dtype=pl.String).alias("key"),
        pl.col("source").replace_strict(by_source, return_dtype=pl.Int32).alias("precision"),
        pl.col("source").replace_strict({s: formats[s] for s in by_source}, return_dtype=pl.String).alias("format"),
        pl.col("value").cast(pl.Float32, strict=False).alias("v32"),
    )


def _contained_files(rows: pl.DataFrame) -> set[int]:
    """Rows of files that lie, nearly whole, in another file of the same format (times included, where logged)."""
    import polars as pl

    copies: set[int] = set()
    for (_,), same in rows.group_by("format"):
        sources = same.group_by("source").len().sort(["len", "source"], descending=[True, True])["source"].to_list()
        if len(sources) < 2:
            continue
        kept = same.filter(pl.col("source") == sources[0])
        match = ["key", "step", "v32", "rank"] + (["time"] if same["time"].null_count() < len(same) else [])
        for source in sources[1:]:
            mine = same.filter(pl.col("source") == source)
            found = mine.join(kept.select(match).unique(), on=match, how="semi", nulls_equal=True)
            if len(found) >= _CONTAINED * len(mine):
                copies.update(found["row"].to_list())
                mine = mine.join(found.select("row"), on="row", how="anti")
            kept = pl.concat([kept, mine])
    return copies


def _second_witnesses(rows: pl.DataFrame) -> set[int]:
    """Rows that a more precise format has too; the n-th occurrence of one pairs with the n-th of the other."""
    import polars as pl

    same = ["key", "step", "v32"]
    rows = rows.with_columns(pl.int_range(pl.len()).over(["format", *same]).alias("occurrence"))
    worse = pl.col("precision") > pl.col("precision").min().over([*same, "occurrence"])
    return set(rows.filter(worse)["row"].to_list())
