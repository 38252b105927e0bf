"""What random rows of the training data have in common (``--data``): BOS, masks, the shift between inputs and targets, padding, copies.

Measures and token numbers alone, no text. Each sentence says what was counted, in how many rows; whether that is meant, the model knows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forensics.batches.sample_stats import LABELS, MASK, MASKS, fingerprint, tokens_of
from forensics.run.robust import median
from parsers.records.data_sets import DataSet, Row

ROWS, LEAST = 512, 20  # unit: rows that are looked at, as many as suspects are compared with; fewer than twenty have no habit
MOST = 0.9  # of the rows: a habit
SHIFTS = (0, 1, 2, -1)  # of targets against inputs: as they are, the next token, shifted twice, the one before
PADDED = 0.2  # of the positions (forensics.detectors.utilization)


def told(data: DataSet) -> list[str]:
    """The sentences, or none where there are too few rows."""
    if data.rows < LEAST:
        return []
    picked = np.sort(np.random.default_rng(0).choice(data.rows, min(ROWS, data.rows), replace=False))
    return of_rows(data.get([int(i) for i in picked]))


def of_rows(rows: Sequence[Row]) -> list[str]:
    tokens = [(row, ids) for row in rows if (ids := tokens_of(row)) is not None and len(ids) > 2]
    found = _copies(rows)
    if len(tokens) >= LEAST:
        found += [*_begins([ids for _, ids in tokens]), *_targets(tokens), *_padding(tokens)]
    return found


def _begins(rows: list[NDArray[np.int64]]) -> list[str]:
    """The token that rows begin with, and where it stands twice."""
    (first, often), twice = Counter(int(r[0]) for r in rows).most_common(1)[0], sum(int(r[0] == r[1]) for r in rows)
    n = len(rows)
    if often < MOST * n and len({len(r) for r in rows}) == 1:
        return []  # windows of one length are cut anywhere
    if often < MOST * n:
        spare = f"{often} begin with token {first}, the others with others" if often >= n / 2 else "they begin with many different tokens"
        return [f"No token begins most of {n} random rows: {spare}. Where the model expects a BOS, it is missing there."]
    if twice >= n / 2:
        return [f"Token {first} stands twice at the beginning of {twice} of {n} random rows: a BOS that template and tokenizer both set."]
    return [f"Token {first} begins {often} of {n} random rows, once."]


def _targets(rows: list[tuple[Row, NDArray[np.int64]]]) -> list[str]:
    """How targets stand to the inputs of the same row: shifted by how much, masked where."""
    pairs = [(ids, t) for row, ids in rows if (t := _labels(row)) is not None and len(t) == len(ids)]
    masks = [m for row, _ in rows if (m := _mask(row)) is not None]
    found = []
    if len(pairs) >= LEAST:
        best, share = max(((k, _agreement(pairs, k)) for k in SHIFTS), key=lambda x: x[1])
        words = {
            0: "the inputs themselves: the model has to shift them, as those of transformers do",
            1: "the next tokens: nothing may shift them again",
            2: "the tokens after the next ones: they were shifted twice",
            -1: "the tokens before: they were shifted the wrong way",
        }
        where = (
            f"are {words[best]}"
            if share >= MOST
            else "agree with the inputs at no shift from -1 to 2: they are other text, or not of these inputs"
        )
        found.append(f"Targets of {len(pairs)} random rows {where}.")
        masks += [t == MASK for _, t in pairs]
    if len(masks) < LEAST:
        return found
    bare, whole = sum(not m.any() for m in masks), sum(bool(m.all()) for m in masks)
    if whole:
        found.append(f"In {whole} of {len(masks)} random rows every target is masked: nothing is learnt from them.")
    if bare == len(masks):
        found.append(f"No target is masked in {bare} random rows: prompts and padding are trained on, too.")
    else:
        heads = [int(np.argmin(m)) / len(m) for m in masks if m.any() and not m.all()]
        begin = f", and {np.median(heads):.0%} of the row before the first target that counts" if heads else ""
        found.append(f"{np.mean([m.mean() for m in masks]):.0%} of the targets of {len(masks)} random rows are masked{begin}.")
    return found


def _labels(row: Row) -> NDArray[np.int64] | None:
    return next((a for key, value in row.items() if LABELS.match(key) and (a := _whole_numbers(value)) is not None), None)


def _mask(row: Row) -> NDArray[np.bool_] | None:
    """Where the targets are left out, by a loss mask of its own."""
    return next((a == 0 for key, value in row.items() if MASKS.match(key) and (a := _whole_numbers(value)) is not None), None)


def _whole_numbers(value: Any) -> NDArray[np.int64] | None:
    try:
        array = np.asarray(value)
    except ValueError:
        return None
    return array.astype(np.int64) if array.ndim == 1 and array.size > 1 and array.dtype.kind in "iub" else None


def _agreement(pairs: list[tuple[NDArray[np.int64], NDArray[np.int64]]], shift: int) -> float:
    """The usual share of targets that are the input so many places on, where they are not masked."""
    shares = []
    for ids, targets in pairs:
        a, b = (ids[shift:], targets[: len(targets) - shift]) if shift >= 0 else (ids[:shift], targets[-shift:])
        counts = b != MASK
        if counts.any():
            shares.append(float((a == b)[counts].mean()))
    return median(shares) if shares else 0.0


def _padding(rows: list[tuple[Row, NDArray[np.int64]]]) -> list[str]:
    """Padding by the attention mask, else by a token that ends rows of one length again and again."""
    masks = [m for row, _ in rows if (m := _whole_numbers(row.get("attention_mask"))) is not None]
    if len(masks) >= LEAST:
        share = float(np.mean([(m == 0).mean() for m in masks]))
    elif len({len(ids) for _, ids in rows}) == 1:
        share = float(np.mean([_tail(ids) for _, ids in rows]))
    else:
        return []
    often = " Packed samples, or batches of like length, would save that." if share >= PADDED else ""
    return [f"{share:.0%} of the positions of {len(rows)} random rows are padding.{often}"] if share > 0 else []


def _tail(ids: NDArray[np.int64]) -> float:
    """The share of a row that repeats its last token at its end, without the first of them."""
    other = np.flatnonzero(ids != ids[-1])
    return (len(ids) - 2 - int(other[-1])) / len(ids) if len(other) else 0.0


def _copies(rows: Sequence[Row]) -> list[str]:
    """Rows that are there more than once among the random ones: of the whole set far more are."""
    prints = Counter(p for r in rows if (p := fingerprint(r)) is not None)
    more = sum(n - 1 for n in prints.values())
    return (
        [f"{more} of {len(rows)} random rows are copies of others among them: the set holds far more."]
        if more and len(rows) >= LEAST
        else []
    )
