"""Looks at the suspects where the data are at hand (``--data``): are the samples of the spikes unlike random ones?

Nothing of this runs unless asked, and nothing of the content leaves it: the case gets measures and counts, never a line of
the data. The suspects are the samples of the batches behind the spikes; they are compared with 512 random rows.

A sample stands out in a measure where it lies beyond all random rows, by half of their distance from the median to the
extreme again, and by six robust standard deviations: random rows have extremes of their own. A whole batch stands out where its
median does among random batches of its size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics import ranking
from forensics.batches import culprits, row_habits, sample_stats, step_to_samples, suspect_batches
from forensics.case import Case, Clue, Finding, jsonable
from forensics.case_parts import headline
from forensics.causes.files import outcome_weights
from forensics.errors import ForensicsError
from forensics.run import settings
from forensics.run.robust import median, robust_sigma
from parsers.records import data_sets
from parsers.records.data_sets import DataSet, Row
from parsers.tables import Run

RANDOM, MOST, LINES = 512, 256, 5
BEYOND, SIGMAS, MANY, BATCHES, NEAR = 0.5, 6.0, 6, 200, 0.8
WORDS = {  # in words, and the smallest difference from the median of random rows that is worth a line
    "length": ("length", np.log(2)),
    "compression": ("compressed size", 0.05),
    "repetition": ("repeated 4-grams", 0.1),
    "entropy": ("entropy in bits", 0.5),
    "non_text": ("share of non-text", 0.02),
    "out_of_range": ("token ids out of range", 0.0),
    "masked": ("share of masked targets", 0.1),
    "size": ("largest input", np.log(2)),
    "nonfinite": ("inputs that are no number", 0.0),
}
LOGS = ("length", "size")  # spread by factors
Rows = list[tuple[Any, Row]]  # (id as the run names it, row)
Measures = Sequence[Mapping[str, float]]


def document(case: Case, found: Mapping[str, Any]) -> dict[str, Any]:
    """The case.json of a run whose data were looked at, with ``suspects``."""
    plain: dict[str, Any] = jsonable(found)
    return case.to_json() | {"suspects": plain}


def look(run: Run, case: Case, path: Path) -> dict[str, Any]:
    """What ``suspects`` of case.json holds: ``{"data", "kind", "rows", "looked_at", "random", "steps", "lines", "odd", "why", "habits"}``.

    ``lines`` are sentences, at most five; ``why`` says why nothing could be looked at. Raises ForensicsError where the data
    cannot be opened.
    """
    try:
        data = data_sets.open_data(path, block_of(run))
        return _looked_at(run, case, path, data) | {"habits": row_habits.told(data)}
    except (data_sets.Unreadable, OSError) as e:
        raise unusable(e) from e


def unusable(e: Exception) -> ForensicsError:
    return ForensicsError(f"--data: {e}", "Give a jsonl, parquet, arrow, npy, npz or bin file, or a folder of them or of pictures.")


def _looked_at(run: Run, case: Case, path: Path, data: DataSet) -> dict[str, Any]:
    found: dict[str, Any] = {"data": path.name, "kind": data.kind, "rows": data.rows, "looked_at": 0, "random": 0,
                             "steps": [], "lines": [], "odd": [], "why": ""}  # fmt: skip
    steps, wanted = _suspects(run, case.findings)
    if not wanted:
        return found | {"why": "the samples of the spikes are not known" if steps else "there is no spike to look behind"}
    rows = rows_of(data, wanted)
    if not rows:
        return found | {"why": f"none of the {len(wanted)} samples is a row of these data", "steps": steps}
    rng, taken = np.random.default_rng(0), set(rows.values())
    picked = [int(i) for i in np.sort(rng.choice(data.rows, min(2 * RANDOM, data.rows), replace=False)) if i not in taken]
    if len(picked) < 20:
        return found | {"why": "too few other rows to compare with", "steps": steps}
    picked = sorted(int(i) for i in rng.permutation(picked)[:RANDOM])
    suspects, others = list(zip(rows, data.get(list(rows.values())), strict=True)), data.get(picked)
    vocabulary = data.vocabulary or _whole(settings.number(run, "vocab_size"))
    lines, odd = compare(suspects, others, vocabulary, _whole(settings.number(run, "classes")))
    if not lines and not any(sample_stats.measures(row).keys() - {"label"} for _, row in suspects):
        return found | {"why": "they hold no text, tokens or numbers, which is what is compared", "steps": steps}
    return found | {"looked_at": len(suspects), "random": len(others), "steps": steps, "lines": lines[:LINES], "odd": odd}


def _whole(x: float | None) -> int | None:
    return int(x) if x is not None and x > 0 else None


def block_of(run: Run) -> int | None:
    for key in ("block_size", "seq_len", "seq_length", "sequence_length", "context", "context_length", "max_seq_len", "n_ctx"):
        for row in run.tables["config"].to_pylist():
            if row["key"].rsplit(".", 1)[-1] == key and row["value"].isdigit():
                return int(row["value"])
    return None


def _suspects(run: Run, findings: Sequence[Finding]) -> tuple[list[int], list[Any]]:
    """(steps that are looked behind, ids of their samples)."""
    behind = suspect_batches.behind(run, findings)
    known = [step_to_samples.batch(run, b.step, b.attempt) for b in behind]
    return sorted({b.step for b in behind}), list(dict.fromkeys(x for k in known if k for x in k["samples"]))[:MOST]


def rows_of(data: DataSet, wanted: Sequence[Any]) -> dict[Any, int]:
    """id -> row: by the id column where the data have one that knows them, else ids are row numbers."""
    named = data.ids()
    if named is not None:
        where = {str(x): i for i, x in enumerate(named)}
        found = {x: where[str(x)] for x in wanted if str(x) in where}
        if found:
            return found
    return {x: x for x in wanted if isinstance(x, int) and 0 <= x < data.rows}


def compare(
    suspects: Rows, others: Sequence[Row], vocabulary: int | None = None, classes: int | None = None
) -> tuple[list[str], list[Any]]:
    """(sentences on what sets the suspects apart, ids of those that stand out), the most striking first."""
    mine = [sample_stats.measures(row, vocabulary) for _, row in suspects]
    theirs = [sample_stats.measures(row, vocabulary) for row in others]
    ids = [name for name, _ in suspects]
    said: list[tuple[float, str]] = []
    odd: dict[Any, None] = {}
    for key, (words, least) in WORDS.items():
        x, y = _column(mine, key), _column(theirs, key)
        if np.isfinite(x).sum() == 0 or np.isfinite(y).sum() < 20:
            continue
        usual = y[np.isfinite(y)]
        wide = key in LOGS and np.nanmin(np.concatenate([x, y])) > 0
        a, b = (np.log(x), np.log(usual)) if wide else (x, usual)
        out, far = _outside(a, b, least)
        if out.any():
            worst = int(np.argmax(np.where(out, far, -1)))
            odd.update(dict.fromkeys(ids[i] for i in np.flatnonzero(out)))
            who = f"sample {ids[worst]}" if out.sum() == 1 else f"{int(out.sum())} of {len(x)} samples, such as {ids[worst]}"
            text = f"{who}: {words} {x[worst]:.3g}; of {len(usual)} random rows {usual.min():.3g} to {usual.max():.3g}"
            said.append((float(far[worst]), text))
        elif (half := _as_a_batch(x, usual, words, least)) is not None:
            said.append((SIGMAS, half))
    wrong, top = _labels(mine, theirs, ids, classes)
    if wrong:
        odd.update(dict.fromkeys(i for i, _ in wrong))
        count = sum("label" in r for r in mine)
        said.append((1e3, f"{len(wrong)} of {count} labels lie outside 0 to {top - 1}, such as {wrong[0][1]} of sample {wrong[0][0]}"))
    said += _copies(suspects, others)
    return [text for _, text in sorted(said, key=lambda s: -s[0])], list(odd)[:20]


def _column(rows: Measures, key: str) -> NDArray[np.float64]:
    return np.array([r.get(key, np.nan) for r in rows])


def _outside(x: NDArray[np.float64], y: NDArray[np.float64], least: float) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """(which of x stand out among y, how far in robust standard deviations)."""
    middle = median(y)
    spread = max(robust_sigma(y, middle), 1e-3 * max(abs(middle), 1e-3))
    far = np.abs(x - middle) / spread
    margin = BEYOND * max(1.0, len(x) * MANY / len(y))  # more samples have wilder extremes
    above = x > y.max() + margin * (y.max() - middle)
    below = x < y.min() - margin * (middle - y.min())
    return (above | below) & (far >= SIGMAS) & (np.abs(x - middle) > least), np.nan_to_num(far)


def _as_a_batch(x: NDArray[np.float64], y: NDArray[np.float64], words: str, least: float) -> str | None:
    """The median of the suspects among the medians of random batches of as many."""
    x = x[np.isfinite(x)]
    if len(x) < 8:
        return None
    rng = np.random.default_rng(0)
    medians = np.median(rng.choice(y, (BATCHES, len(x))), axis=1)
    out, _ = _outside(np.array([np.median(x)]), medians, least)
    if not out[0]:
        return None
    return f"half of the {len(x)} samples have {words} {np.median(x):.3g} or more extreme; random batches {medians.min():.3g} to {medians.max():.3g}"


def _labels(mine: Measures, theirs: Measures, ids: Sequence[Any], classes: int | None) -> tuple[list[tuple[Any, int]], int]:
    """(ids with labels that are no class, number of classes)."""
    known = {int(r["label"]) for r in theirs if "label" in r}
    labels = [(i, int(r["label"])) for i, r in zip(ids, mine, strict=True) if "label" in r]
    if not labels or len(known) > 0.2 * len(theirs):  # numbers to regress on are no classes
        return [], 0
    top = classes if classes is not None and max(known) < classes else max(known) + 1
    return [(i, x) for i, x in labels if not 0 <= x < top], top


def _copies(suspects: Rows, others: Sequence[Row]) -> list[tuple[float, str]]:
    """Copies among the suspects, where random rows have none or far fewer."""
    n, rows = len(suspects), [row for _, row in suspects]
    same, usual = _most_alike([sample_stats.fingerprint(r) for r in rows]), _most_alike([sample_stats.fingerprint(r) for r in others])
    if same >= 3 and same / n > 5 * usual / len(others):
        return [(500.0, f"{same} of {n} samples are copies of one; of {len(others)} random rows {usual if usual > 1 else 'none'} are")]
    if n < 3:
        return []
    near, base = _pairs(rows[:64]), _pairs(list(others[:64]))
    if near > 0.2 and near > 5 * base:
        return [(400.0, f"{near:.0%} of the samples nearly repeat another one of them; of random rows {base:.0%}")]
    return []


def _most_alike(prints: Sequence[bytes | None]) -> int:
    known = [p for p in prints if p is not None]
    return max((known.count(p) for p in set(known)), default=0)


def _pairs(rows: Sequence[Row]) -> float:
    """Share of rows that have a near copy among the rows: at least 0.8 of their shingles in common."""
    hashes = [h for r in rows if (h := sample_stats.minhash(r)) is not None]
    if len(hashes) < 2:
        return 0.0
    table = np.stack(hashes)
    alike = (table[:, None, :] == table[None, :, :]).mean(axis=2)
    np.fill_diagonal(alike, 0.0)
    return float((alike.max(axis=1) >= NEAR).mean())


def weighed(run: Run, case: Case, found: Mapping[str, Any]) -> Case:
    """The case with one more clue for the causes that blame data, ranked again.

    Their weights stand in the causes (``outcomes``): 6 decibans where samples stand out, since random ones do so in one run of
    twenty, but odd samples are not yet bad ones; 3 against where none does, since wrong labels look like any other.
    """
    if not found["looked_at"]:
        return case
    text = f"The samples are unlike random ones: {found['lines'][0]}." if found["lines"] else (
        f"The {found['looked_at']} samples look like {found['random']} random ones in length, repetition, entropy, ids and labels."
    )  # fmt: skip
    weights = outcome_weights("samples: unlike" if found["lines"] else "samples: alike")
    ranked = ranking.rank([replace(h, clues=(*h.clues, Clue(text, weights[h.id]))) if h.id in weights else h for h in case.hypotheses])
    told = headline.sentence(run, case.verdict, case.findings, ranked, case.checks)
    return replace(case, hypotheses=ranked, answer=told, culprits=culprits.culprits(run, ranked, case.findings, case.verdict))
