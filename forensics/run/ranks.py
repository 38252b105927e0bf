"""The ranks of a run beside each other: one metric as a matrix of steps and ranks, and how far each rank came."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from forensics.run.once import once
from forensics.run.series import Floats, Ints
from parsers import arrow
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

_OF_RANK = lazy_re(r"(?i)(?P<before>(?:.*[/._])?)rank[_-]?(?P<rank>\d{1,5})[/._-](?P<after>\S+)$")
COVERAGE = 0.5  # a rank that logged fewer than this share of the steps of the busiest one is left out


@dataclass(frozen=True, eq=False)
class Matrix:
    """`value[i, j]`: what rank `ranks[j]` logged at `step[i]`, over the steps that all these ranks logged."""

    tag: str
    step: Ints
    ranks: list[int]
    value: Floats


@once
def columns(run: Run) -> dict[str, pa.Table]:
    """Rows with a step and a rank, by canonical name; only where two ranks or more logged."""
    table = _by_tag(run.tables["metrics"])
    if len(arrow.distinct(table["rank"])) < 2:
        return {}
    part = table.filter(arrow.flags(arrow.present(table["rank"]) & arrow.present(table["step"])))
    names = part["name"].combine_chunks()
    code = arrow.filled(names.indices, -1)
    named = {name: part.filter(arrow.flags(code == i)) for i, name in enumerate(names.dictionary.to_pylist()) if name}
    return {name: mine for name, mine in named.items() if len(arrow.distinct(mine["rank"])) > 1}


def _by_tag(table: pa.Table) -> pa.Table:
    """The rows of tags that name their rank, as one process logs what it gathered (``rank1/param_norm``), with their rank, where no row has one."""
    code, tags = arrow.codes(table["tag"])
    named = {i: m for i, tag in enumerate(tags) if (m := _OF_RANK.match(tag)) is not None}
    if not named or table["rank"].null_count < table.num_rows:
        return table
    ranks, short = np.full(len(tags), -1, np.int32), list(tags)
    for i, m in named.items():
        ranks[i], short[i] = int(m["rank"]), m["before"] + m["after"]
    distinct = sorted(set(short))
    again = np.array([distinct.index(t) for t in short], np.int32)
    rank = ranks[code]
    for name, column in (("rank", arrow.numbers(rank, rank >= 0)), ("tag", arrow.coded(again[code], distinct))):
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), column)
    return table


def matrix(run: Run, name: str) -> Matrix | None:
    """The metric of all ranks in the last attempt of the run; the last value where a rank logged a step twice."""
    table = columns(run).get(name)
    if table is None:
        return None
    attempt = arrow.filled(table["attempt"], 0)
    tag = table["tag"].combine_chunks()
    code = arrow.values(tag.indices)
    best = int(np.bincount(code).argmax())
    keep = (attempt == attempt.max()) & (code == best)
    step, rank, value = (arrow.values(table[c])[keep] for c in ("step", "rank", "value"))
    if not len(rank):
        return None
    counts = {int(r): len(np.unique(step[rank == r])) for r in np.unique(rank)}
    chosen = [r for r, n in counts.items() if n >= COVERAGE * max(counts.values())]
    if len(chosen) < 2:
        return None
    logged = [dict(zip(step[rank == r].tolist(), value[rank == r].tolist(), strict=True)) for r in chosen]
    common = sorted(set(logged[0]).intersection(*logged[1:]))
    if not common:
        return None
    values = np.array([[of[s] for of in logged] for s in common])
    return Matrix(tag.dictionary.to_pylist()[best], np.array(common, np.int64), chosen, values)


def last_steps(run: Run) -> dict[int, int]:
    """How far each rank came in the last attempt, of the metric that most ranks logged; ranks that hardly log are left out."""
    best: dict[int, int] = {}
    for table in columns(run).values():
        attempt = table["attempt"].fill_null(0).to_numpy(zero_copy_only=False)
        keep = attempt == attempt.max()
        step, rank = (table[c].to_numpy(zero_copy_only=False)[keep] for c in ("step", "rank"))
        counts = {int(r): int((rank == r).sum()) for r in np.unique(rank)}
        reach = {r: int(step[rank == r].max()) for r, n in counts.items() if n >= COVERAGE * max(counts.values())}
        best = reach if len(reach) > len(best) else best
    return best if len(best) > 1 else {}
