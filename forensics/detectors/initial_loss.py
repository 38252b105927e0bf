"""Initial loss

What it sees
    A first loss far above what an untrained model should have.

How it decides
    An untrained classifier or language model guesses: its loss is ln(number of classes or tokens). It fires when the first values lie half
    above that, where config names the number; else when the first of a steady fall lies above 16 nats, half more than guessing among
    50,000 tokens costs, and the loss falls to less than a third of it within the first quarter of the run (a regression's
    loss, which has no such scale, is left alone unless it does) or is that of a token, with its perplexity beside it. A loss that climbs
    there from a lower first batch began well. Without a number of classes it is a warning only where an accuracy (that can be of the same
    answers, by what both are at the end), a perplexity or the unit shows that the loss is a mean of nats (*nll* alone does not: minus the
    log-likelihood of numbers is a density's), or config sets large initial weights or a rate far above what is usual with its optimizer, or
    where a loss of a million comes down to a thousandth of that: a sum over a batch or a sequence has no such bound, and what
    never comes as low as ln(C) is such a sum; nor has the loss of a sequence in CTC, which begins at 17 to 30 in runs that are well.

Cannot tell
    When the log begins in the middle of the run, or the loss is no cross entropy and config says nothing; where another term of the
    loss alone makes up what it lies above ln(C); or where evaluations before the first update show a model that was trained before: it
    knows one set, and is as wrong as the training loss on another.

Folklore
    "Check the loss at initialization": ln(C), or something is wrong with the init, the labels or the loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run import initial_weights, settings
from forensics.run.evaluations import guessing, outcomes, shares
from forensics.run.first_evaluations import knows_another
from forensics.run.inputs import needed, surviving
from forensics.run.recipe import FAR, recipe
from forensics.run.robust import error_of_median, median, noise_by_steps
from forensics.run.series import Floats, Series, names, parts, series
from forensics.run.usual_rate import usual
from forensics.spikes.visible import MARGIN
from parsers import arrow
from parsers.lazy_regex import lazy_re
from parsers.loss_names import is_likelihood
from parsers.name_rules import words
from parsers.tables import Run

NEEDS = ["loss.train"]
INPUTS = ["config"]
# measured: of 1,366 made and 809 real runs four lie between 1.2 and 1.5, none of them for a fault of its first loss; the lowest such fault lies at 1.86
ABOVE = 1.5
LARGEST = 12.5  # unit: nats; ln of 262,144 tokens, as many as the largest vocabularies in use have (Gemma)
OF_MANY = 16.0  # unit: nats; half more than ln(50,257), GPT-2's vocabulary, where the number of tokens is not known
FALLS = 1 / 3  # measured: not critical, 0.23 and 0.47 tell the same runs (docs/thresholds.md)
FIRST, LEAST = 3, 5  # bound: three values make a median; two more show where they fall to, where no number of classes is known
# measured: of 1,366 made and 809 real runs four begin so and come down so far: three with inputs, weights or a rate far too large, and a sound regression
ABSURD, FOLDS = 1e6, 1000.0
TENTH = 0.1  # bound: of the probability of the right answer; the most likely one is another far less often than nine times in ten
_SEQUENCE = lazy_re(r"\b(ctc|rnnt|transducer|cer|wer)\b")
_DENSITY = lazy_re(r"\bnll\b")  # minus the log-likelihood of anything: of numbers it is a density's, which guessing does not bound
_SUM = lazy_re(r"(?i)sum(?!_over_batch)")  # Keras' mean is called sum_over_batch_size
_CONTEXT = "block_size block n_ctx context_length context_size vocab_size n_vocab"  # of what predicts tokens
QUARTER = 20  # statistical: the noise of so many values is known to a quarter of itself


@dataclass(frozen=True)
class Facts(BaseFacts):
    """The first loss, in nats."""

    first: float
    chance: float | None  # ln of the number of classes or tokens, where config names it
    falls_by: int  # step at which it is back at chance
    init_std: float | None  # as configured


def smallest_effect(run: Run) -> str:
    s = needed(run, "loss.train")
    chance = guessing(run, s)
    if chance is None:
        return f"a first loss above {OF_MANY:g} nats that falls to a third of it in the first quarter of the run"
    x = s.value[surviving(s)]
    noise = noise_by_steps(x[:QUARTER]) if len(x) > FIRST else 0.0
    least = max(ABOVE * chance, 1.0) + MARGIN * error_of_median(noise, FIRST)
    return f"a first loss of {least:.3g}, where guessing costs {chance:.3g}"


def detect(run: Run) -> Iterator[Finding]:
    s = needed(run, "loss.train")
    rows = surviving(s)
    if not len(rows) or s.step[rows[0]] > max(5 * s.interval, 0.02 * int(s.step[rows[-1]])):
        raise CannotTell("the log does not begin with the first steps")
    x = s.value[rows]
    chance = guessing(run, s)
    if not chance and not is_likelihood(s.tag):
        raise CannotTell(f"the unit of {s.tag} is unknown, and what guessing costs in it")
    if len(rows) < (FIRST if chance else LEAST):
        raise CannotTell("the log holds too few of the first steps")
    first = float(x[0]) if not chance and x[0] > x[1] > x[2] else median(x[:FIRST])  # rows may lie many steps apart
    bound = ABOVE * chance if chance else OF_MANY
    if first < 1.0 or first <= bound or not (chance or _quarter(x) < FALLS * first or of_a_token(run, s)):
        return
    if x[0] <= bound / ABOVE:  # what the very first batch costs, which no update has touched: a loss that climbs from there began well
        return
    if known := knows_another(run, first, int(s.step[rows[0]]), chance or LARGEST):
        raise CannotTell(f"{known}, so that its first loss says nothing of the initialization")
    if said := initial_weights.of_library(run, first, chance):
        raise CannotTell(said)
    if tag := _of_sequences(run):
        raise CannotTell(f"beside {tag} the loss is of a sequence, so that guessing does not bound it")
    if chance and (term := _explains(run, first - ABOVE * chance)):
        raise CannotTell(f"{s.tag} is a sum with {term}, so that guessing does not bound it")
    if not chance and (terms := _terms(run, first)):
        raise CannotTell(
            f"{s.tag} is made of {terms[0]}, {terms[1]} and others, each of which is a loss of its own, so that guessing does not bound it"
        )
    reach = np.flatnonzero(x < (chance or LARGEST / 3))
    end = int(s.step[rows[int(reach[0])]]) if len(reach) else int(s.step[rows[-1]])
    summed = any(_SUM.search(str(found.value)) for found in settings.named(run, "reduction loss_reduction"))
    a_guess = f"far above {f'ln({outcomes(run):.0f}) = {chance:.3g}' if chance else 'a guess over any vocabulary'}"
    in_nats, later = chance or (is_mean(run, s) and not summed), median(x[-LEAST:])
    title = f"First loss {first:.4g}, {a_guess if in_nats or later <= 0 else f'{first / later:.3g} times what it comes down to'}"
    begin = int(s.step[rows[0]])
    facts = Facts(first, chance, end, settings.number(run, "init_std"))
    shown = evidence.window(s, begin, end, title="the first steps", where=s.place(run, rows[0]), margin=0.5)
    told = in_nats or _begins_large(run) or _rate_far_too_high(run) or ABSURD <= first >= FOLDS * later
    summed = summed or bool(chance and chance < x.min())  # a first loss that is too high comes down to what guessing costs
    severity = "warning" if told and not summed else "info"
    yield evidence.found(facts, title, (begin, end), severity, shown, times=(s.clock(rows[0]), None))


def _explains(run: Run, excess: float) -> str | None:
    """Another term of the loss whose first value alone is as high as what the loss is too high by."""
    others = (p for p in parts(run, "loss.aux") if not is_likelihood(p.tag))
    firsts = ((p.tag, p.value[surviving(p)]) for p in others)
    return next((tag for tag, x in firsts if len(x) and x[0] >= excess), None)


def _terms(run: Run, first: float) -> list[str]:
    """Other losses, each smaller at first than the whole and together at least as large: it is a sum of them, weighted or not."""
    terms = (name for name in names(run) if "loss" in name and "eval" not in name and name != "loss.train")  # another logger's copy is none
    others = [(p.tag, p.value[surviving(p)]) for name in terms for p in parts(run, name)]
    firsts = {tag: float(x[0]) for tag, x in others if len(x) and 0 < x[0] < first}
    return list(firsts) if len(firsts) > 1 and sum(firsts.values()) >= first else []


def _of_sequences(run: Run) -> str:
    """A metric or a setting that only what is trained on whole sequences has: a loss of CTC or of a transducer, an error rate of characters or words."""
    told = (*arrow.words(run.tables["metrics"]["tag"]), *(s.key for s in settings.every(run)))
    return next((tag for tag in told if _SEQUENCE.search(words(tag))), "")


def _quarter(x: Floats) -> float:
    """The level that the loss has reached in a quarter of the run."""
    return median(x[FIRST : max(len(x) // 4, 10)][-LEAST:])


def _begins_large(run: Run) -> bool:
    """Whether config itself sets initial weights that are too large."""
    try:
        return initial_weights.configured(run).large
    except CannotTell:
        return False


def _rate_far_too_high(run: Run) -> bool:
    """Whether the rate is so high that the updates of the first interval alone explain a loss of any height."""
    rate, known = recipe(run).rate, usual(run).high
    return rate is not None and known is not None and rate >= FAR * known


def is_mean(run: Run, s: Series) -> bool:
    """Whether something says that the loss is a mean cross entropy in nats: its unit, or what only such a loss has beside it."""
    return of_a_token(run, s) or any(_agrees(run, split) for split in ("train", "eval"))


def _agrees(run: Run, split: str) -> bool:
    """May a loss be the mean cross entropy of the answers whose accuracy stands beside it? Misses cost no more than a guess among the largest
    vocabulary and hits less than even odds; and who gives the right answer exp(-loss) of the probability is not wrong nearly every time."""
    loss, hits = series(run, f"loss.{split}"), series(run, f"acc.{split}")
    if loss is None or hits is None or not loss.usable.any() or not hits.usable.any():
        return hits is not None
    cost, share = median(loss.value[loss.usable][-LEAST:]), median(shares(hits.value[hits.usable])[-LEAST:])
    return bool(share >= TENTH * np.exp(-cost) and cost <= (1 - share) * LARGEST + share * np.log(2))


def of_a_token(run: Run, s: Series) -> bool:
    """Whether the loss is that of a token, beyond doubt: its unit says so, its perplexity was logged, or config describes a language model."""
    described = settings.setting(run, "heads") is not None and bool(settings.named(run, _CONTEXT))
    said = "nat" in s.unit and ("tok" in s.unit or not _DENSITY.search(words(s.tag)))
    return described or said or any(series(run, name) is not None for name in ("ppl.train", "ppl.eval"))
