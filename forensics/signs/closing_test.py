"""The test at the end of a run beside the evaluations on the way: the same score of two sets that are meant to be alike."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from forensics.run import settings
from forensics.run.evaluations import shares
from forensics.run.metric_columns import arrays
from forensics.run.robust import median
from forensics.run.series import Series, names, parts
from forensics.signs.one_class import one_class_gets_all
from forensics.signs.sign import SEEN, Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers import arrow
from parsers.lazy_regex import lazy_re
from parsers.name_rules import words
from parsers.tables import Run

SUBJECT = "held_out"  # another half of it
EFFECTS = {
    "closing_test_far_worse": "acc.eval",
    "closing_test_costs_more": "loss.eval",
}  # symptoms of their own, for which there is no detector

FAR = 0.1  # bound: a tenth of all answers; a test set that was made anew took 0.03 to 0.15 on CIFAR-10 (arXiv 1902.10811)
ERRORS = 5.0  # statistical: standard errors of a share, within which chance stays in all but one of a million cases
LEAST = 400  # bound: samples of a test whose size was not logged; the error of a share of them is at most 0.025
# of what the evaluations ended at, and of what they had gained. Measured: of 80 made runs that tell three cost so much, all of them leaks; sound ones cost
# 1.33 times as much at most, or keep all but a hundredth of the gain
MORE, LOST = 1.5, 0.25
LASTS = 3  # bound: three values make a median that one odd value does not move
RANKS = 64  # bound: processes that may each log the one test; a tag with more rows was logged on the way
LOOKED = 400  # bound: of as many tags; those of experts and layers are many
_TEST = lazy_re(r"\b(test(ing)?|oot|out of time)\b")  # of later times, as banks call it
_ON_THE_WAY = lazy_re(r"\b(va|val|valid|validation|validate|dev|eval|evaluation|holdout|held out)\b")
_SCORE = lazy_re(
    r"^((?:macro |micro |weighted |balanced )?)(acc|accuracy|acc 1|top 1|f 1|auc|auroc|roc auc|r 2|r squared)((?: macro| micro| weighted)?)$"
)
_COST = lazy_re(r"^(?:loss|mae|mse|rmse|nll|ce|bce|xent|cross entropy|error|wer|cer|ter|ppl|perplexity|pinball|wape|mape|smape)$")
_NOISE = {"test", "testing", "oot", "out", "of", "time", "va", "val", "valid", "validation", "validate", "dev", "eval", "evaluation", "holdout", "held", "final", "avg", "average", "mean"}  # fmt: skip
_NOISE |= {"epoch", "set", "%", "score", "metric", "metrics", "on", "the"}
_ALIKE = {"accuracy": "acc", "acc 1": "acc", "top 1": "acc", "auroc": "auc", "roc auc": "auc", "r squared": "r 2"}
_ITEMS = "test_size n_test num_test num_test_samples test_samples n_test_samples"


_EVALUATED = {"acc.eval", "score.eval", "loss.eval", "ppl.eval"}
Kind = Callable[[str], tuple[str, str] | None]


class _Test(NamedTuple):
    tag: str
    step: int | None
    value: float
    source: str
    at: int | None


def closing_test_far_worse(s: Symptoms) -> Sign:
    """The one test at the end gives far less than the last evaluations on the way, of the same score: more than chance and their choice explain."""
    if (one := _one_answer(s)) is not None:
        return one
    found = _pairs(s.run, _kind, "accuracy, F1 or AUC")
    if isinstance(found, str):
        return cannot_tell(found)
    judged = [_beside(s.run, v, t) for v, t in found]
    short, room, text, v, t = max(judged, key=lambda j: j[0])
    if short > max(FAR, room):
        step = int(v.step[v.usable][-1])
        return seen(f"{text}.", where=s.run.where(t.source, t.at), last=step, short=short)
    if short > min(FAR, room):
        return cannot_tell(f"the test is too small, or its distance too: {text}.")
    return absent(f"{text}.")


def closing_test_costs_more(s: Symptoms) -> Sign:
    """The one test at the end costs half as much again as the last evaluations on the way, by the same loss or error, and takes a quarter of what these had
    gained: they are of data that training has seen."""
    if (one := _one_answer(s)) is not None:
        return one
    found = _pairs(s.run, _cost, "loss or error")
    if isinstance(found, str):
        return cannot_tell(found)
    judged = [
        (t.value / level, (t.value - level) / (first - level), v, t) for v, t in found for first, level in [_ends(v)] if 0 < level < first
    ]
    if not judged:
        return cannot_tell("the evaluations on the way did not get better, or are not positive.")
    more, lost, v, t = max(judged, key=lambda j: min(j[0] / MORE, j[1] / LOST))
    text = f"{v.tag} comes from {_ends(v)[0]:.4g} to {_ends(v)[1]:.4g} on the way, and {t.tag} at the end is {t.value:.4g}"
    if more >= MORE and lost >= LOST:
        return seen(f"{text}: {more:.2g} times as much.", where=s.run.where(t.source, t.at), last=int(v.step[v.usable][-1]), short=lost)
    return absent(f"{text}.")


def _one_answer(s: Symptoms) -> Sign | None:
    """Where one answer is given to all, two sets differ by how often its class comes, and nothing leaked."""
    one = one_class_gets_all(s)
    told = f"one answer to all is right as often as its class comes, in each set: {one.text}"
    return does_not_arise(told) if one.state == SEEN else None


def _ends(v: Series) -> tuple[float, float]:
    x = v.value[v.usable]
    return float(x[0]), median(x[-LASTS:])


def _pairs(run: Run, kind_of: Kind, what: str) -> list[tuple[Series, _Test]] | str:
    """The evaluations on the way beside each test at the end, of one score; else what is missing for it, as a sentence."""
    tests = _tests(run, kind_of)
    if not tests:
        return f"no {what} of a test at the end was logged."
    found = [(v, t) for kind, v in _on_the_way(run, set(tests), kind_of).items() for t in tests[kind] if _is_behind(v, t)]
    return found or f"no {LASTS} evaluations on the way with the score of {next(iter(tests.values()))[0].tag} were logged."


def _beside(run: Run, v: Series, t: _Test) -> tuple[float, float, str, Series, _Test]:
    """How far the test falls short, how far it may, both in words, and the two."""
    level = median(shares(v.value[v.usable])[-LASTS:])
    value, room, size = _of_test(run, t)
    text = f"{v.tag} is {level:.3g} over the last {LASTS} evaluations on the way, and {t.tag} at the end is {value:.3g}"
    return level - value, room, f"{text}; chance makes up to {room:.2g} of {size}", v, t


def _of_test(run: Run, t: _Test) -> tuple[float, float, str]:
    """The share that a test gives, how far chance may take it, and in words of how many samples."""
    value = float(shares(np.array([t.value]))[0])
    logged = next((int(n) for x in settings.named(run, _ITEMS) if (n := settings.as_number(x.value)) and n > 1), None)
    n = logged or LEAST
    room = ERRORS * math.sqrt(max(value * (1 - value), 0.0) / n)
    return value, room, f"{n} samples" if logged else f"{n} samples (how many it has was not logged)"


def _tests(run: Run, kind_of: Kind) -> dict[tuple[str, str], list[_Test]]:
    """By score: what was logged once of a set that is called test."""
    columns = arrays(run)
    code, tags = columns["tag"], columns["tags"]
    few = np.flatnonzero(np.bincount(code[code >= 0], minlength=len(tags)) <= RANKS)
    wanted = {
        tags[i]: kind for i in few.tolist() if tags[i] and _TEST.search(text := words(tags[i])) and (kind := kind_of(text)) is not None
    }
    if not wanted:
        return {}  # a filter would import all of pyarrow.compute
    rows = run.tables["metrics"].filter(arrow.flags(np.isin(code, [i for i, tag in enumerate(tags) if tag in wanted])))
    found: dict[str, list[tuple[_Test, int | None]]] = {}
    for row in rows.select(["tag", "step", "value", "source", "at", "rank"]).to_pylist():
        if row["value"] is not None and math.isfinite(row["value"]):
            rank = row.pop("rank")
            found.setdefault(row["tag"], []).append((_Test(**row), rank))
    once = {tag: rows for tag, rows in found.items() if len({(t.source, rank) for t, rank in rows}) == len(rows)}
    out: dict[tuple[str, str], list[_Test]] = {}
    for tag, rows in once.items():
        out.setdefault(wanted[tag], []).extend(t for t, _ in rows)
    return out


def _on_the_way(run: Run, kinds: set[tuple[str, str]], kind_of: Kind) -> dict[tuple[str, str], Series]:
    """By score: the evaluations of a set that is not called test, those with most values."""
    found: dict[tuple[str, str], Series] = {}
    told = [name for name in names(run, LASTS) if name in _EVALUATED or kind_of(words(name.removeprefix("other/")))][:LOOKED]
    for v in (v for name in told for v in parts(run, name)):
        text = words(v.tag)
        kind = kind_of(text)
        if kind in kinds and _ON_THE_WAY.search(text) and not _TEST.search(text) and v.usable.sum() >= LASTS:
            found[kind] = max(found.get(kind, v), v, key=lambda x: int(x.usable.sum()))
    return found


def _is_behind(v: Series, t: _Test) -> bool:
    """Whether a test stands at the end: behind the evaluations of its file, or in a file of its own."""
    return t.step is None or t.source not in v.source or t.step >= int(v.step[v.usable][-1])


def _kind(text: str) -> tuple[str, str] | None:
    """The score that a tag in words names, and over what it is averaged; None where it names none, or one of a part or a best."""
    m = _SCORE.match(" ".join(w for w in text.replace("/", " ").split() if w not in _NOISE))
    return None if m is None else (_ALIKE.get(m[2], m[2]), (m[1] or m[3]).strip())


def _cost(text: str) -> tuple[str, str] | None:
    """The loss or error that a tag in words names; None where it names none, or one of a part or a best."""
    left = " ".join(w for w in text.replace("/", " ").split() if w not in _NOISE)
    return (left, "") if _COST.match(left) else None
