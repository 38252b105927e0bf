"""Hits of each class by itself: ``val_recall_0``, ``val_recall_1``; ``Pseudo dice/0`` and ``iou_scratch`` of what is no background."""

from __future__ import annotations

from forensics.run.metrics_in_words import worded
from forensics.run.once import once
from forensics.run.series import Series
from parsers.lazy_regex import lazy_re
from parsers.name_rules import words
from parsers.tables import Run

_NUMBERED = r"(?: per class| class| cls| c)?[ /]\d+$"
_OF_CLASS = rf"\b(?:recall|sensitivity|tpr|acc|accuracy){_NUMBERED}"
_MEASURE = r"\b(?:dice|io ?u|iou|jaccard)"
_OVERLAP = rf"{_MEASURE}{_NUMBERED}"
_OF_NAMED = rf"{_MEASURE}[ /](?!(?:m|mean|avg|average|loss|score|metric|best|background|bg|train|val|test|total|all|macro|micro)$)[a-z]+$"
_NAME = lazy_re(r"[a-z]+$")
_NUMBER = lazy_re(r"(?<!\d)\d+$")


@once
def class_hits(run: Run) -> list[list[Series]]:
    """Series of the classes of one measure, in order. Classes are counted from 0 on; of the best 1, 5 and 10 answers there is no 0."""
    return _groups(run, _OF_CLASS)


@once
def class_overlaps(run: Run) -> list[list[Series]]:
    """The same of overlaps with what was segmented, of which none is of the background; also of classes that are called by name."""
    named: dict[str, list[Series]] = {}
    for s in worded(run, _OF_NAMED):
        named.setdefault(_NAME.sub("", words(s.tag)), []).append(s)
    return [*_groups(run, _OVERLAP), *(of for of in named.values() if len(of) > 1)]


def _groups(run: Run, pattern: str) -> list[list[Series]]:
    groups: dict[str, dict[int, Series]] = {}
    for s in worded(run, pattern):
        told = words(s.tag)
        if number := _NUMBER.search(told):
            groups.setdefault(told[: number.start()], {})[int(number[0])] = s
    return [[of[i] for i in range(len(of))] for of in groups.values() if len(of) > 1 and set(of) == set(range(len(of)))]
