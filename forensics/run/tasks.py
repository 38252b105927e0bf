"""Evaluations of a policy in several tasks, by a measure of any name: ``eval/rig_a`` and ``eval/rig_b``, ``eval/return_base`` and ``eval/return_reversed``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forensics.run.inputs import is_policy
from forensics.run.once import once
from forensics.run.series import Series, names, parts
from parsers.lazy_regex import lazy_re
from parsers.loss_names import EVAL
from parsers.name_rules import words
from parsers.records.vocabulary import EVALUATION
from parsers.tables import Run

LEAST = 6  # bound: as of a dataset's loss (forensics.detectors.dataset_loss)
LETTERS = 3  # bound: a word that says what is measured has more than two
LOOKED = 200  # bound: of as many tags
AWAY = 0.25  # unit: of the largest value; who moves less from where it began shows no way
# words that are of any measure, and of any split
_OF_ANY = lazy_re(r"mean|std|var|min|max|avg|average|median|best|worst|first|last|final|count|num|total|sum|values?|epoch|step|time|of")
_SPLITS = {*EVALUATION, "out", "held"}


@once
def tasks(run: Run) -> tuple[Series, ...]:
    """The largest group of them, each turned so that it falls as the model gets better: what goes far from where it began was learnt. None where some
    of them rise then and others fall."""
    if not is_policy(run):  # whose returns have any name; accuracies and losses have known ones
        return ()
    logged = [s for name in names(run, LEAST) if name.startswith("other/") for s in parts(run, name)][:LOOKED]
    evaluated = [s for s in logged if EVAL.search(words(s.tag)) and s.usable.sum() >= LEAST]
    groups = ([a, *(b for b in evaluated if b is not a and _alike(a, b))] for a in evaluated)
    group = max(groups, key=len, default=[])
    ways = {way for s in group if (way := _way(s))}
    if len(group) < 2 or len(ways) != 1:
        return ()
    rises = ways == {1}
    return tuple(replace(s, value=-s.value, rises=True) if rises else s for s in group)


def _alike(a: Series, b: Series) -> bool:
    """Do two tags name one measure of two things, at the same steps?"""
    one, two = words(a.tag).split(), words(b.tag).split()
    shared, apart = ({*one} & {*two}) - _SPLITS, ({*one} ^ {*two}) - _SPLITS
    same = np.array_equal(a.step, b.step) and np.array_equal(a.source, b.source)
    named = any(len(w) >= LETTERS and not _OF_ANY.fullmatch(w) for w in shared)
    return same and named and bool(apart) and not any(map(_OF_ANY.fullmatch, apart))


def _way(s: Series) -> int:
    """Whether it rises or falls where it first goes far from its first value; 0 where it never does."""
    moved = s.value[s.usable] - s.value[s.usable][0]
    far = np.flatnonzero(np.abs(moved) >= AWAY * float(np.abs(s.value[s.usable]).max()))
    return int(np.sign(moved[far[0]])) if len(far) else 0
