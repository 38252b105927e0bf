"""Evaluations beside the training that they judge: values that count, the level of training at their steps, what guessing would give."""

from __future__ import annotations

import math

import numpy as np

from forensics.run import loss_terms, settings
from forensics.run.robust import median
from forensics.run.scores import held_out
from forensics.run.series import Floats, Ints, Series, series
from forensics.run.usable_values import usable
from parsers.lazy_regex import lazy_re
from parsers.loss_names import is_likelihood
from parsers.name_rules import words
from parsers.tables import Run

_NAMED = "classes class_names classnames label_names labels label_list"
DEFAULT_LABELS = 2  # unit: LABEL_0 and LABEL_1 of transformers' PretrainedConfig
LEVEL = 15  # statistical: values that a level of the training loss is the median of, which is off by a third of a noise
_TOKENS = lazy_re(r"\btokens?\b")
MANY_ANSWERS = 0.25  # unit: a quarter of all answers; measured: of 300 runs that log both, dropout and means over an epoch cost 0.13 at most, mixing 0.38
FIFTHS = 5  # a fifth of the evaluations: the word "last" in plain English
IN_ORDER = 5  # statistical: five values fall in order by chance once in 120
MEDIAN = 3  # bound: values whose median one odd value does not move
FEW = 3  # bound: evaluations of which the last one is the best, and better than all before; without a trend one of all is once in as many


def evaluations(run: Run, name: str = "loss.eval") -> tuple[Ints, Floats]:
    """Steps and values of the evaluations that count; empty where there are none."""
    return usable(run, name)


def improves_after(run: Run, step: int) -> str:
    """What the evaluations after a step say against harm, by their loss or else their first score, where the best of all stands in their last fifth,
    which as a whole is better than any before the step, or where each of all is better than the one before; nothing otherwise. A training loss that
    rises meanwhile measures something else: augmentation, a weight of its terms, harder data. Of terms of a loss all have to get better."""
    held = held_out(run)
    told = [_improves_after(s, step) for s in ([s for s, _ in loss_terms.held_out(run)] if held is None else [held])]
    return told[0] if told and all(told) else ""


def _improves_after(held: Series, step: int) -> str:
    at, x = held.step[held.usable], held.value[held.usable]
    after, before = x[at > step], x[at <= step]
    in_order = len(after) > 0 and len(x) >= IN_ORDER and bool((np.diff(x) < 0).all())
    last = max(len(after) // FIFTHS, int(len(after) >= FEW))
    better = last and x[-last:].min() <= x.min() and np.median(after[-last:]) < min(before.min(initial=math.inf), float(after[0]))
    if not in_order and not better:
        return ""
    first, best = before[-1] if len(before) else after[0], after.min()
    if held.name == "loss.eval":
        return f"the evaluation loss goes on falling, from {first:.4g} to {best:.4g}"
    first, best = (-first, -best) if held.rises else (first, best)
    return f"{held.tag} goes on getting better, from {first:.4g} to {best:.4g}"


def shares(x: Floats) -> Floats:
    """Hits as shares, where they were logged as percentages."""
    return x / 100 if np.nanmax(x, initial=0) > 1 else x


def answers_at_end(run: Run) -> tuple[float, float] | None:
    """Shares of right answers in training and of held-out data, means of the last fifth (a share of few answers is 0 or 1 as often as not); None where
    either was logged fewer than three times."""
    logged = [usable(run, name)[1] for name in ("acc.train", "acc.eval")]
    if min(map(len, logged)) < MEDIAN:
        return None
    train, held = (float(np.mean(shares(x)[-max(MEDIAN, len(x) // FIFTHS) :])) for x in logged)
    return train, held


def of_tokens(run: Run, s: Series | None) -> bool:
    """Whether what is counted right are tokens, by the name of the metric or by their perplexity beside it: answers out of a vocabulary, not out of a
    few classes."""
    beside = any(series(run, name) is not None for name in ("ppl.train", "ppl.eval"))
    return s is not None and (beside or _TOKENS.search(words(s.tag)) is not None)


def level_at(s: Series, step: int, values: int = LEVEL) -> float | None:
    """Median of the last values up to a step; None where there is none."""
    before = s.value[s.usable & (s.step <= step)]
    return median(before[-values:]) if len(before) else None


def ends(x: Floats, values: int = 10) -> tuple[float, float] | None:
    """Median of the first and of the last values; None of an empty series."""
    return (median(x[:values]), median(x[-values:])) if len(x) else None


def outcomes(run: Run) -> float | None:
    """How many tokens or classes the config names; None where it does not, or names one. A model that has labels answers with them."""
    n = _labels(run) or settings.number(run, "vocab_size") or settings.number(run, "classes")
    return n if n is not None and n > 1 else None


def classes(run: Run) -> float | None:
    """How many classes the config names, whatever the vocabulary of the inputs is."""
    n = _labels(run) or settings.number(run, "classes")
    return n if n is not None and n > 1 else None


def _labels(run: Run) -> int:
    """Labels of a Hugging Face model by its config, or classes that it lists by their names; 0 where there are no more than the two that every config
    has by default."""
    named = {s.key for s in settings.every(run) if ".id2label." in f".{s.key}"}
    if len(named) > DEFAULT_LABELS:
        return len(named)
    listed = (s.value for s in settings.named(run, _NAMED) if isinstance(s.value, list) and all(isinstance(x, str) for x in s.value))
    return next((len({*names}) for names in listed if len({*names}) > 1), 0)


def guessing(run: Run, s: Series) -> float | None:
    """ln of the number of tokens or classes: what guessing costs. None where config names none, or the loss is no cross entropy of them: a loss of
    preferences is of two answers."""
    n = outcomes(run) if series(run, "pref.margin") is None else None
    return math.log(n) if n is not None and is_likelihood(s.tag) else None


def first_pass(run: Run) -> int | None:
    """Last step of the first pass over the data; None where the log does not say it."""
    epoch = series(run, "epoch")
    if epoch is None or not epoch.usable.any():
        return None
    step, x = epoch.step[epoch.usable], epoch.value[epoch.usable]
    whole = bool((x == np.round(x)).all())
    over = np.flatnonzero(x > (x.min() if whole else 1))
    return int(step[over[0]]) - 1 if len(over) else int(step[-1])


def gaps_to(train: Series, step: Ints, x: Floats) -> Floats:
    """Training loss around each evaluation less the evaluation loss; NaN where none was logged there."""
    width = max(int(np.median(np.diff(step))) // 2, train.interval) if len(step) > 1 else train.interval
    rows = np.flatnonzero(train.usable)
    rows = rows[np.argsort(train.step[rows], kind="stable")]
    at, value = train.step[rows], train.value[rows]
    first, stop = np.searchsorted(at, step - width), np.searchsorted(at, step + width, side="right")
    level, many = np.full(len(x), np.nan), stop - first
    for n in np.unique(many[many > 0]).tolist():  # windows of one length together
        of = many == n
        level[of] = np.median(value[first[of][:, None] + np.arange(n)], axis=1)  # from both sides: a falling loss favours neither
    return level - x
