"""What evaluations gave beside or in place of a loss: AUC, R2, recall@10, RMSE. One curve each, turned so that it falls as the model gets better."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from forensics.run import loss_terms
from forensics.run.class_hits import class_hits
from forensics.run.once import once
from forensics.run.robust import median
from forensics.run.series import Floats, Ints, Series, names, parts, series
from parsers import objectives
from parsers.lazy_regex import lazy_re
from parsers.loss_names import EVAL, home
from parsers.name_rules import words
from parsers.tables import Run

LEAST = 3  # bound: three values make a median that one odd value does not move
ENOUGH = 5  # statistical: values that show a course (forensics.detectors.train_eval_gap)
ROUNDED = 1e-3  # unit: of a loss; what is printed with four digits
LOOKED = 400  # bound: of as many tags; those of experts and layers are many
_PRECISION, _RECALL = lazy_re(r"\bprecision\b"), lazy_re(r"\brecall\b(?!.*\d)")  # of the first ten of a list it is one of its own
# shares of words or symbols that are wrong, whose unit may be percent
WRONG_WORDS = lazy_re(r"\b(wer|cer|ler|ter|uer|(word|char|character|label|token|phone|phoneme|unit) error( rate)?)\b")
ACCURACY_OR_R2 = "score"  # scikit-learn's word for both, of which only R2 can be negative


@dataclass(frozen=True)
class Score:
    """One score. ``cost`` of a score that rises is its negative."""

    logged: Series
    rank: int  # place in the lists of names.toml
    rises: bool
    guess: float | None  # what one gets who knows nothing
    step: Ints
    value: Floats

    @property
    def tag(self) -> str:
        return self.logged.tag

    @property
    def cost(self) -> Floats:
        return -self.value if self.rises else self.value


@once
def scores(run: Run, side: str = "eval") -> list[Score]:
    """Every score of held-out data ("eval"), or of data of which it is not said what they are ("train"), with three values or more, the one to look at
    first in front: most telling, then most values."""
    logged = [name for name in names(run, LEAST) if name.startswith("other/")]
    nameless = [name for name in logged if objectives.objective(name.removeprefix("other/")) is not None][:LOOKED]
    if series(run, "loss.eval") is None and not loss_terms.held_out(run):
        nameless.append("loss.aux")  # "Loss/val_mae", no term of a sum
    of_one_class = {s.tag for classes in class_hits(run) for s in classes}
    logged_scores = [s for name in (f"score.{side}", "pref.acc", *nameless) for s in parts(run, name) if s.tag not in of_one_class]
    precise = any(
        _PRECISION.search(words(name)) for name in names(run, LEAST)
    )  # beside it a recall is half of a score: who names all has all of it
    found = [told for s in logged_scores if not (precise and _RECALL.search(words(s.tag))) and (told := _score(s, side)) is not None]
    found = [told for told in found if not _is_term(run, told.logged)]
    return sorted(found, key=lambda s: (s.rank, -len(s.step), s.tag))


def _is_term(run: Run, s: Series) -> bool:
    """Whether a value and another of its rows add up to the training loss there: a term that is called as a score is (the "map" of a flow)."""
    loss = series(run, "loss.train")
    if loss is None or EVAL.search(words(s.tag)) or not np.array_equal(loss.step, s.step):
        return False
    rest = loss.value - s.value
    others = (
        p for name in names(run, len(s)) if name.startswith(("other/", "loss.")) for p in parts(run, name) if np.array_equal(p.step, s.step)
    )
    return any(p.tag not in (s.tag, loss.tag) and bool((np.abs(p.value - rest) <= ROUNDED * np.abs(loss.value)).all()) for p in others)


def _score(s: Series, side: str) -> Score | None:
    told = objectives.objective(s.tag, home(s.source[0]))
    rows = np.flatnonzero(s.usable)
    if told is None or told.side != side or len(rows) < LEAST:
        return None
    x = s.value[rows]
    if told.rises and objectives.is_likelihood(s.tag) and x[0] > 0:  # a negated one falls: the log does not say which it is
        return None
    guess = told.guess if told.core != ACCURACY_OR_R2 or x.min() < 0 else None
    return Score(s, told.rank, told.rises, guess, s.step[rows], x)


@once
def held_out(run: Run) -> Series | None:
    """The curve that the evaluation is judged by, which falls as the model gets better: the evaluation loss, else the first of the scores."""
    loss = series(run, "loss.eval")
    if loss is not None and loss.usable.sum() >= LEAST:
        return loss
    if not (found := scores(run)):
        return loss
    s = found[0]
    return replace(s.logged, value=-s.logged.value, rises=True) if s.rises else s.logged


@once
def of_unnamed_data(run: Run) -> Series | None:
    """A score whose name does not say of which data it is, and that is logged half as often as the training loss at most: something was evaluated."""
    loss = series(run, "loss.train")
    found = (s for name in ("score.train", "acc.train") for s in parts(run, name))
    s = next((s for s in found if loss is not None and LEAST <= s.usable.sum() <= loss.usable.sum() / 2), None)
    return None if s is None else replace(s, value=-s.value, rises=True)


def curve(run: Run) -> tuple[Ints, Floats]:
    """Steps and values of the curve that the evaluation is judged by; empty where there is none."""
    s = held_out(run)
    return (s.step[s.usable], s.value[s.usable]) if s is not None else (np.zeros(0, np.int64), np.zeros(0))


def scores_hold(run: Run, since: int, share: float) -> bool:
    """Whether the model answers as well at the end as at a step, to a `share`, by every score of held-out data that tells how many answers are right or
    wrong: then only the certainty of the wrong answers grew, as it does in networks that are well (Guo et al., arXiv 1706.04599, section 3)."""
    told = [(of_wrong, *_levels(s, since)) for of_wrong, s in _answers(run)]
    enough = [(of_wrong, before, end) for of_wrong, before, end in told if before > 0]  # of none, none can be lost
    return bool(enough) and all(end <= before / share if of_wrong else end >= share * before for of_wrong, before, end in enough)


def answers_improve(run: Run, since: int, share: float) -> bool:
    """Whether the wrong answers on held-out data are fewer at the end than at a step, by a `share` of them, by some score, and more by none."""
    wrong = [_levels(s if of_wrong else replace(s, value=_whole(s) - s.value), since) for of_wrong, s in _answers(run)]
    return any(end <= (1 - share) * before for before, end in wrong) and all(end <= before for before, end in wrong)


def _answers(run: Run) -> list[tuple[bool, Series]]:
    """(does it count the wrong ones, it) of every score of held-out answers."""
    hits = series(run, "acc.eval")
    found = [(False, hits)] if hits is not None else []
    found += [(False, c.logged) for c in scores(run) if c.rises and abs(c.value).max() <= 1]
    found += [(True, c.logged) for c in scores(run) if not c.rises and WRONG_WORDS.search(words(c.tag))]
    return [(of_wrong, s) for of_wrong, s in found if s.usable.sum() >= ENOUGH]


def _whole(s: Series) -> float:
    """All answers, in the unit of a share of them."""
    return 1.0 if s.value[s.usable].max() <= 1 else 100.0


def _levels(s: Series, since: int) -> tuple[float, float]:
    """At a step and at the end."""
    return _level(s, since), _level(s, int(s.step[-1]))


def _level(s: Series, at: int) -> float:
    """The median of the three values nearest to a step."""
    x, away = s.value[s.usable], np.abs(s.step[s.usable] - at)
    return median(x[np.argsort(away, kind="stable")[:LEAST]])
