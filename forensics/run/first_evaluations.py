"""Evaluations before the first update: what a model knew that was trained before, told by one log where another begins later."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forensics.run.metric_columns import arrays, column_at, rows_of
from forensics.run.once import once
from forensics.run.series import Series, parts
from parsers.loss_names import is_likelihood
from parsers.tables import Run

LEAST = 3  # bound: values that two logs have in common, so that one is a copy of the other
PRINTED = 0.005  # share; unit: half of the last of three digits
KNOWN = 0.5  # unit: half of what guessing costs
ALIKE = 0.5  # unit: half of the training loss, so that both are means of the same unit


def with_first(run: Run, s: Series) -> Series:
    """The series, with the one value in front that only a copy of it in another log has: a Trainer prints its evaluation before the first step,
    and its state does not keep it."""
    columns = arrays(run)
    rows = rows_of(columns, s.name)
    rows = rows[columns["tag"][rows] == columns["tags"].index(s.tag)]
    source, attempt = column_at(columns, "source", rows), column_at(columns, "attempt", rows)
    for code in np.unique(source).tolist():
        own = rows[source == code]
        x = columns["value"][own]
        if columns["sources"][code] in s.source or len(x) != len(s) + 1 or len(s) < LEAST or len(np.unique(attempt)) > 1:
            continue
        if _close(x[1:], s.value) and not _close(x[:-1], s.value):  # one that stands still would fit either way
            at = int(own[0])
            step = min(int(columns["step"][at]), int(s.step[0]) - s.interval)
            front = {
                "step": step,
                "value": x[0],
                "time": columns["time"][at],
                "attempt": s.attempt[0],
                "alive": True,
                "at": columns["at"][at],
            }
            more = {k: np.r_[np.asarray([v], getattr(s, k).dtype), getattr(s, k)] for k, v in front.items()}
            code_of = np.r_[np.asarray([len(s.source)], np.int32), s.source_code]
            count = None if s.count is None else np.r_[1, s.count]
            return replace(s, **more, source=[*s.source, columns["sources"][code]], source_code=code_of, count=count)
    return s


def _close(x: np.ndarray, y: np.ndarray) -> bool:
    return bool(np.isclose(x, y, rtol=PRINTED, atol=0).all())


@once
def knows_another(run: Run, first: float, step: int, chance: float) -> str:
    """In words, where evaluations before the first update say that the model was trained before on something else: one set costs as much as the
    first training loss, and another less than half of what guessing costs. Nothing otherwise."""
    sets = [with_first(run, p) for p in parts(run, "loss.eval")]
    told = [(p.tag, float(p.value[0])) for p in sets if p.usable[0] and p.step[0] <= step]
    # a loss that has the name of its kind stands for itself, not for a set
    like = {is_likelihood(tag) for tag, x in told if x >= ALIKE * first}
    known = [(tag, x) for tag, x in told if x < KNOWN * chance and is_likelihood(tag) in like]
    return f"before the first update {known[0][0]} is {known[0][1]:.3g}: the model was trained before, on other data" if known else ""
