"""The loss beside the share of right answers: whether the model is less sure than it is right, and what keeps it from being sure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from forensics.run import loss_terms, settings
from forensics.run.evaluations import classes, of_tokens, shares
from forensics.run.metrics_in_words import worded
from forensics.run.robust import median
from forensics.run.series import Floats, Series, parts, series
from forensics.run.usable_values import usable
from forensics.signs.sign import SEEN, Sign, Symptoms, absent, cannot_tell, seen
from parsers.loss_names import TRAIN
from parsers.name_rules import words
from parsers.tables import Run

EFFECTS = {"loss_of_probabilities": "acc.train", "loss_far_above_hits": "acc.train"}  # symptoms of their own, without a detector

LEAST = 3  # bound: three values make a mean that one odd value does not decide
FALLING = 5  # statistical: five values fall in order by chance once in 120
FIRST = 3  # until this step a loss is that of the initialization: Adam has moved a weight by three times the rate at most
# relative: exp of a first loss that is within 0.03 nats of chance; above 1 / WHOLE classes any number would be near a whole one
WHOLE = 0.03
USUAL = 0.1  # paper: label smoothing of Inception-v3 (arXiv:1512.00567) and of the Transformer (arXiv:1706.03762)
RIGHT = 0.9  # unit: nine of ten
MOSTLY = 0.5  # unit: more right than wrong; at chance every cross entropy begins and ends at one number
BEGUN = 0.1  # nats; bound: two numbers of classes below 1 / WHOLE are less apart than that only from ten on, where the end tells them apart
CLEAR = 0.05  # nats above the bound; measured: the training losses of healthy runs with their hits lie below it by more
ABOVE, _OVERLAP = 0.1, r"\b(dice|dsc|jaccard|iou|m ?i ?o ?u)\b"  # bound: at chance logits that know nothing add up to nearly the same
NEAR = 0.03, 0.1  # nats below and above: means over a few hundred samples scatter by 0.03, answers that are not yet sure lie above
COPY = 0.1  # of the loss; bound: further off than a smoothed loss lags behind at the end of a run
SEVERAL = "the training loss adds up several terms, of which the answers are one."


@dataclass(frozen=True)
class End:
    """Means over the last quarter of the run, and how many classes there are."""

    loss: float
    hits: float
    classes: float

    @property
    def bound(self) -> float:
        """What a model that is as sure as it is right costs at most, by Fano's inequality: nats."""
        miss = 1 - self.hits
        unsure = -sum(p * math.log(p) for p in (self.hits, miss) if p > 0)
        return unsure + miss * math.log(max(self.classes - 1, 1))

    @property
    def twice(self) -> float:
        """What the loss and the hits add up to where the loss is given probabilities for logits, and these are sure."""
        return math.log(math.e + self.classes - 1)

    def of_probabilities(self, hits: float) -> float:
        """What it costs on the way, where probabilities are given for logits, of a model that is as sure as it is right."""
        other = (1 - hits) / (self.classes - 1)
        return math.log(math.exp(hits) + (self.classes - 1) * math.exp(other)) - hits * hits - (1 - hits) * other


def loss_high_for_its_hits(s: Symptoms) -> Sign:
    """The training loss ends higher than a model that is as sure as it is right can have it (Fano's inequality)."""
    end = _end(s.run)
    if isinstance(end, str):
        return cannot_tell(end)
    if _fitted(s.run):
        return cannot_tell(SEVERAL)
    text = f"At the end the training loss is {end.loss:.3g} with {end.hits:.1%} of the answers right"
    text += f"; among {end.classes:.0f} classes a model as sure as it is right costs {end.bound:.3g} at most."
    return seen(text) if end.loss > end.bound + CLEAR else absent(text)


def loss_far_above_hits(s: Symptoms) -> Sign:
    """The loss ends higher than a model that is as sure as it is right can have it, usual label smoothing added: something holds it up."""
    end = _end(s.run)
    if isinstance(end, str):
        return cannot_tell(end)
    if classes(s.run) is None:
        return cannot_tell("config does not say the number of classes; a loss that begins at ln of a whole number may be another one's.")
    if _terms(s.run):
        return cannot_tell(SEVERAL)
    least = min([end.loss, *(_mean_of_last(x) for _, x in [usable(s.run, "loss.eval")] if len(x) >= LEAST)])
    most = end.bound + _smoothed(end.classes) + CLEAR
    text = f"The loss ends at {least:.3g} with {end.hits:.1%} of the answers right"
    text += f"; among {end.classes:.0f} classes and with a usual label smoothing it would be {most:.3g} at most."
    return seen(text) if least > most else absent(text)


def low_for_its_hits(run: Run) -> str | None:
    """In words, where hardly an answer is wrong and the loss is as low as for two outcomes: there is little left to fall."""
    (_, loss), hits = usable(run, "loss.train"), usable(run, "acc.train")[1]
    if len(loss) < LEAST or len(hits) < LEAST:
        return None
    end = End(_mean_of_last(loss), _mean_of_last(shares(hits)), 2)
    if end.hits < RIGHT or end.loss > end.bound + CLEAR:
        return None
    return f"with {end.hits:.1%} of the answers right a loss of {end.loss:.3g} has no further to fall"


def _smoothed(classes: float) -> float:
    """Nats that a label smoothing of USUAL costs a perfect model: the entropy of its targets (Szegedy et al., arXiv:1512.00567)."""
    other = USUAL / classes
    own = 1 - USUAL + other
    return -own * math.log(own) - (classes - 1) * other * math.log(other)


def loss_of_probabilities(s: Symptoms) -> Sign:
    """Training or evaluation loss plus the share of right answers ends at ln(e + classes - 1): a cross entropy that is given probabilities for logits."""
    if settings.number(s.run, "label_smoothing"):
        return cannot_tell("config sets label smoothing, which holds the loss up as well.")
    if classes(s.run) is None and worded(s.run, _OVERLAP):
        return cannot_tell("the number of classes is not known, and the loss of a segmentation is seldom a cross entropy alone.")
    end, held_out = _end(s.run), _held_out_end(s.run)
    if isinstance(end, str) and held_out is None:
        return cannot_tell(end)
    if _fitted(s.run) and held_out is None:
        return cannot_tell(SEVERAL)
    told = [] if isinstance(end, str) or _fitted(s.run) else [_squashed(s.run, end, "train")]
    told += [] if held_out is None else [_squashed(s.run, held_out, "eval")]
    return next((t for t in told if t.state == SEEN), told[0])


def _squashed(run: Run, end: End, side: str) -> Sign:
    total, which, x = end.loss + end.hits, {"train": "training", "eval": "evaluation"}[side], usable(run, f"loss.{side}")[1]
    text = f"The {which} loss ends at {end.loss:.3g} with {end.hits:.1%} of the answers right, which adds up to {total:.3f}"
    floor = f"ln(e + {end.classes:.0f} - 1) = {end.twice:.3f}"
    if end.hits < 1 / end.classes + ABOVE:
        return cannot_tell(f"{end.hits:.1%} of the answers are right, as guessing gives: logits may add up so, too.")
    if len(x) < 4 * LEAST and (np.diff(x[-LEAST - 1 :]) < 0).all() and 2 * x[-1] - x[-LEAST] < end.twice - end.hits - NEAR[0]:
        return cannot_tell(f"the {which} loss of {len(x)} values still falls: going on like this it is below {floor} soon.")
    if end.loss > end.bound + CLEAR and end.twice - NEAR[0] <= total <= end.twice + NEAR[1] and not _below(run, end.twice, side):
        return seen(f"{text}: a cross entropy of numbers between 0 and 1 comes down to {floor} less that share, and no lower.")
    return absent(f"{text}; a cross entropy of numbers between 0 and 1 would end with {floor}.")


def _held_out_end(run: Run) -> End | None:
    """The end of the evaluations by themselves, whatever the training loss adds up, where no loss was ever lower than probabilities for logits
    allow. An accuracy without a word for its samples is that of the evaluations, too, where one such loss is all there is beside it."""
    (_, train), (_, loss) = usable(run, "loss.train"), usable(run, "loss.eval")
    curve = series(run, "acc.eval") or series(run, "acc.train")
    if curve is None or TRAIN.search(words(curve.tag)) or len(loss) < LEAST or curve.usable.sum() < LEAST:
        return None
    last, hits = _mean_of_last(loss), _mean_of_last(shares(curve.value[curve.usable]))
    lowest = min(float(x.min()) for x in (*([] if _fitted(run) else [train]), loss) if len(x))
    # a vocabulary is no small number that two losses could tell
    begins = [] if of_tokens(run, curve) else [_begin(run, side) for side in ("train", "eval")]
    n = classes(run) or next(filter(None, (_squashed_classes(b, lowest, last, hits) for b in begins)), None)
    end = End(last, hits, n) if n is not None else None
    return end if end is not None and lowest >= end.twice - 1 - NEAR[0] else None


def _below(run: Run, twice: float, side: str) -> bool:
    """Whether the loss, beside its own hits, ever comes lower than probabilities could bring it, or is on its way there at each of the last values."""
    loss, hits = series(run, f"loss.{side}"), series(run, f"acc.{side}")
    if loss is None or hits is None:
        return False
    _, i, j = np.intersect1d(loss.step[loss.usable], hits.step[hits.usable], return_indices=True)
    total = loss.value[loss.usable][i] + shares(hits.value[hits.usable])[j]
    falls = len(total) > FALLING and bool((np.diff(total[-FALLING:]) < 0).all())
    return len(total) >= LEAST and (falls or median(np.sort(total)[:LEAST]) < twice - NEAR[0])


def _terms(run: Run) -> list[Series]:
    """The terms that the training loss adds up, without smoothed copies of the loss itself: these are smoothed as the loss is not, and as high."""
    loss = series(run, "loss.train")
    logged = [p for p in parts(run, "loss.aux") if p.usable.sum() >= LEAST]
    if loss is None or not loss.usable.any():
        return logged
    end = _mean_of_last(loss.value[loss.usable])
    levels = {p.tag: _mean_of_last(p.value[p.usable]) for p in logged}
    return [p for p in logged if p.smoothing in ("none", loss.smoothing) or abs(levels[p.tag] - end) > COPY * abs(end)]


def _fitted(run: Run) -> bool:
    """Whether the training loss adds up terms that are fitted to other targets than the answers; a penalty, or what is too small to matter, is none."""
    own = [_mean_of_last(p.value[p.usable]) for p in _terms(run) if not loss_terms.is_penalty(p.tag)]
    return len(own) > 1 and sum(own) - max(own) > CLEAR


def _end(run: Run) -> End | str:
    """The end of the run; else what is missing for it, as a sentence."""
    (_, loss), (_, held_out) = usable(run, "loss.train"), usable(run, "loss.eval")
    own, others = usable(run, "acc.train")[1], usable(run, "acc.eval")[1]
    hits = own if len(own) >= LEAST else others
    for what, x in (("the training loss", loss), ("the share of right answers", hits)):
        if len(x) < LEAST:
            return f"fewer than {LEAST} values of {what} were logged."
    ends = [_mean_of_last(loss)]
    if hits is others and len(held_out) >= LEAST:  # dropout lifts the one, overfitting the other
        ends.append(_mean_of_last(held_out))
    least, right = min(ends), _mean_of_last(shares(hits))
    if classes(run) is None and of_tokens(run, series(run, "acc.train" if hits is own else "acc.eval")):
        return "what is counted right are tokens, and a loss that is far from their share says nothing of a vocabulary that is not told."
    if (n := _classes(run) or _squashed_classes(_begin(run, "train"), float(min(held_out, default=math.inf)), least, right)) is None:
        return "the number of classes is not known: config does not say it, and the loss does not begin at ln of a whole number."
    return End(least, right, n)


def _classes(run: Run) -> float | None:
    """How many classes there are: by config, else by a first loss that is what guessing among a whole number of them costs."""
    told = classes(run)
    step, loss = usable(run, "loss.train")
    if told is not None or step[0] > FIRST or not math.log(2 - WHOLE) <= loss[0] <= math.log(1 / WHOLE):
        return told
    n = round(math.exp(loss[0]))
    return float(n) if n > 1 and abs(math.exp(loss[0]) / n - 1) <= WHOLE else None


class _Begin(NamedTuple):
    """The first logged loss of a side, the share of hits beside it (None: not logged), and the highest loss."""

    loss: float
    hits: float | None
    highest: float


def _begin(run: Run, side: str) -> _Begin | None:
    (step, loss), (at, hits) = usable(run, f"loss.{side}"), usable(run, f"acc.{side}")
    if not len(loss):
        return None
    beside = shares(hits)[at == step[0]]
    return _Begin(float(loss[0]), float(beside[0]) if len(beside) else None, float(loss.max()))


def _squashed_classes(begin: _Begin | None, lowest: float, last: float, hits: float) -> float | None:
    """The classes for which a loss would begin near chance, or as far below it as its hits say, and end where a cross entropy of probabilities does,
    and the lowest of an evaluation would not be below it; None where there are none."""
    n = round(math.exp(last + hits) - math.e + 1) if hits > MOSTLY and last + hits < math.log(1 / WHOLE) else 0
    if n <= 2 or begin is None:
        return None
    end = End(last, hits, n)
    learnt = hits >= RIGHT and begin.hits is not None and begin.hits > 1 / n and begin.highest <= end.twice + WHOLE
    least = end.of_probabilities(begin.hits) if learnt and begin.hits is not None else math.log(n)
    if not least - BEGUN <= begin.loss <= math.log(n) + WHOLE:
        return None
    return float(n) if lowest >= end.twice - 1 - NEAR[0] else None


def _mean_of_last(x: Floats) -> float:
    return float(np.mean(x[-max(len(x) // 4, LEAST) :]))
