"""Lists of the samples to train on and to evaluate on, where they lie with the run: what stands in both."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from forensics.run import settings
from forensics.run.settings import Setting
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen
from parsers.lazy_regex import lazy_re
from parsers.records.vocabulary import EVALUATION
from parsers.tables import Run

SUBJECT = "held_out"  # another part of it
EFFECTS = {"evaluation_ids_in_training": "config"}  # a symptom of its own, for which there is no detector

LEAST = 10  # bound: samples of a set; lists of fewer are those of datasets, fields or modules
IDS = 0.9  # bound: of the names hold a digit, as those of samples do; data sets, languages and tasks may be trained on and evaluated on
SHARE = 0.05  # unit: one sample in twenty; of CIFAR-10's test set 3 % are copies in the training set (Barz and Denzler, arXiv 1902.00423)
_TRAIN, _HELD_OUT = {"train", "training", "tr", "trn"}, {*EVALUATION, "te", "va"}
_WORDS = lazy_re(r"[^a-z0-9]+")


def evaluation_ids_in_training(s: Symptoms) -> Sign:
    """Of the samples that are listed for the evaluation, one in twenty or more is listed for training, too."""
    pairs = [*_pairs(s.run)]
    if not pairs:
        return cannot_tell("no lists of the samples for training and for evaluation lie with the run.")
    shared = [(len(train & held) / len(held), len(train & held), len(held), told) for train, held, told in pairs]
    share, both, n, told = max(shared, key=lambda x: x[0])
    text = f"{both or 'None'} of the {n} evaluation samples listed in {told.key} {'is' if both == 1 else 'are'} also listed for training."
    return (seen if share >= SHARE else absent)(text, where=told.where)


def _pairs(run: Run) -> Iterator[tuple[set[str], set[str], Setting]]:
    """(samples of the training, samples of an evaluation, the list of the latter) of lists that are called alike but for the word of their split."""
    lists = [(t, _split(t.key), ids) for t in settings.every(run) if (ids := _ids(t.value)) is not None]
    trained = {rest: ids for _, (kind, rest), ids in lists if kind == "train"}
    for told, (kind, rest), ids in lists:
        if kind == "held out" and rest in trained:
            yield trained[rest], ids, told


def _split(key: str) -> tuple[str, str]:
    """(which split a key names, its other words)."""
    words = [w for w in _WORDS.split(key.lower()) if w]
    kinds = {"train" if w in _TRAIN else "held out" for w in words if w in _TRAIN or w in _HELD_OUT}
    rest = " ".join(w for w in words if w not in _TRAIN and w not in _HELD_OUT)
    return (kinds.pop() if len(kinds) == 1 else "", rest)


def _ids(value: Any) -> set[str] | None:
    """The names of samples that a list holds; None of any other value, and of numbers that count from the first on: these are of each set by itself."""
    if not isinstance(value, list) or not all(isinstance(v, str | int) and not isinstance(v, bool) for v in value):
        return None
    names = {str(v) for v in value}
    counted = names in ({str(i) for i in range(first, first + len(names))} for first in (0, 1))
    told = sum(re.search(r"\d", name) is not None for name in names) >= IDS * len(names)
    return names if len(names) >= LEAST and told and not counted else None
