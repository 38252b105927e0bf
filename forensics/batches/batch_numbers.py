"""Numbers that a log gives of each batch and that tell batches apart: the id of a sample, how many tokens, how many boxes, a place in the data."""

from __future__ import annotations

import re

import numpy as np

from forensics.batches.data_passes import Batches
from forensics.run.once import once
from forensics.run.series import Series, names, parts
from parsers.lazy_regex import lazy_re
from parsers.name_rules import words
from parsers.tables import Run

LEAST = 20  # values; fewer show no scatter
DISTINCT = 0.5  # bound: of the values differ, so that five in a row agree by accident once in more than a thousand million offsets
SCATTERS = 0.3  # bound: of the changes go down and as many up; a counter only rises, noise does half of each
FEW = 8  # bound: values of a counter, which begins anew at one place or goes on
PLACE = lazy_re(
    r"\b(?:data|dataset|loader|sampler|chunk|doc(?:ument)?|record|sample|shard|corpus|file|row)s? ?(?:\d|idx|index|pos(?:ition)?|offset|cursor|start|first|no|number)\b"
    r"|\b(?:cursor|data ?(?:offset|pos(?:ition)?))\b|^(?:row|chunk|document|record)$",
    re.I,
)


@once
def numbered(run: Run) -> dict[str, Batches]:
    """By tag: (attempt, step) -> the number of that batch. Of metrics without a name of their own, whole numbers that scatter, and counters that
    are called a place in the data."""
    unnamed = [s for name in names(run, FEW) if name.startswith("other/") for s in parts(run, name)]
    return {s.tag: _batches(s) for s in unnamed if _tells(s) or _is_place(s)}


def _tells(s: Series) -> bool:
    x = s.value[s.attempt == s.attempt[0]]  # what comes again after a restart is what is asked
    if len(x) < LEAST or not np.isfinite(s.value).all() or (s.value != np.round(s.value)).any() or len(np.unique(x)) < DISTINCT * len(x):
        return False
    change = np.diff(x)
    return bool(min((change < 0).mean(), (change > 0).mean()) >= SCATTERS)


def _is_place(s: Series) -> bool:
    """Whether a counter says where in the data a batch begins. Any other counter may count since the launch."""
    x = s.value[s.attempt == s.attempt[0]]
    whole = np.isfinite(s.value).all() and (s.value == np.round(s.value)).all()
    return bool(PLACE.search(words(s.tag))) and len(x) >= FEW and bool(whole) and bool((np.diff(x) > 0).mean() > 1 - SCATTERS)


def _batches(s: Series) -> Batches:
    rows = zip(s.attempt.tolist(), s.step.tolist(), s.value.tolist(), strict=True)
    return {(attempt, step): frozenset([f"{value:.0f}"]) for attempt, step, value in rows}
