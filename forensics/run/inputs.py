"""What detectors begin with: the series that they need, and its rows that count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from forensics.errors import CannotTell
from forensics.run import epoch_means, held_values
from forensics.run.once import once
from forensics.run.series import Ints, Series, parts, series
from parsers import loss_names, objectives
from parsers.tables import Run


def needed(run: Run, name: str) -> Series:
    """A metric that the detector's NEEDS names. Raises CannotTell where it was not logged."""
    s = series(run, name)
    if s is None:
        raise CannotTell(f"{name} was not logged")
    return s


def surviving(s: Series) -> Ints:
    """The rows with a finite value that no later attempt logged again; of a loss not the zeros that it begins with: nothing is trained
    before a buffer is full."""
    rows = np.flatnonzero(s.alive & np.isfinite(s.value))
    trained = np.flatnonzero(s.value[rows]) if len(rows) and s.value[rows[0]] == 0 and s.name.startswith("loss.") else rows[:0]
    return rows[trained[0] :] if len(trained) else rows


LOSSES = (
    "loss.train",
    "loss.eval",
    "ppl.train",
    "ppl.eval",
    "bpb.train",
    "bpb.eval",
)  # best first; a perplexity is the exponential of the loss
RISING = ("rl.reward", "score.train", "score.eval", "acc.train", "acc.eval")  # what stands for it where training raises what was logged
ANY_LOSS = "|".join((*LOSSES, "loss.aux"))
LOST = 0.5  # bound: of what training had gained; rewards and scores go up and down by less while a policy explores
# unit: a third of what was lost; three healthy TD3 runs of maker 75 that dip before they rise had made up 43 to 74 % at their ends
REGAINED = 1 / 3
FEWEST = 4  # bound: the fewest values that a trend is judged by (spikes/trend.py)
REWARDS = 5  # bound: the fewest values that a trend is judged by (spikes/trend.py); fewer leave the loss as the better witness
OBJECTIVE = "|".join((ANY_LOSS, *RISING))


PREFERENCES = ("pref.margin", "pref.chosen", "pref.acc")


def comes_back(before: float, lowest: float, final: float) -> bool:
    """Whether a reward, or a score, that fell from one level to another ends on its way back: off-policy learners dip before they learn."""
    return final - lowest >= REGAINED * (before - lowest)


@once
def is_policy(run: Run) -> bool:
    """Whether the run trains a policy: rewards were logged along the way. Where answers are compared in pairs (DPO, reward models), what
    is called a reward is a difference of log-probabilities, and the loss is the objective (Rafailov et al., arXiv 2305.18290)."""
    reward = series(run, "rl.reward")
    compared = series(run, "loss.train") is not None and any(series(run, name) is not None for name in PREFERENCES)
    return reward is not None and len(surviving(reward)) >= REWARDS and not compared


@once
def loss_of(run: Run) -> Series:
    """The loss to look at: the training loss, else the evaluation's, else its perplexity, else the term that stands for a sum that was
    not logged; of those that were logged too seldom to be judged none where another was logged often enough. Raises CannotTell where there is none of them, and beside a reward: the loss of a policy is a surrogate, whose
    gradient is right and whose value need not fall (Schulman et al., arXiv 1707.06347)."""
    if is_policy(run):
        raise CannotTell("a reward was logged, and the loss beside one is a surrogate that need not fall")
    logged = [s for name in LOSSES if (s := series(run, name)) is not None]
    s = next((s for s in logged if len(s) >= FEWEST), None) or next(iter(logged), None) or leading_term(run)
    if s is None:
        terms = [p.tag for p in parts(run, "loss.aux")]
        why = f"only terms of a loss were logged ({', '.join(terms[:4])}), none of which stands for the whole"
        raise CannotTell(why if terms else "no loss was logged with a step")
    if _is_negated(s):
        raise CannotTell(f"{s.tag} is below zero throughout, as no cost of its kind can be: it was logged with the other sign")
    if _may_be_hits(run, s):
        raise CannotTell(f"{s.tag} names no metric, and its values rise as an accuracy does: the log does not say whether it is a loss")
    return held_values.one_each(s)


def _is_negated(s: Series) -> bool:
    values = s.value[surviving(s)]
    return objectives.is_among(s.tag, "never_negative") and len(values) > 0 and bool(values.max() < 0)


def _may_be_hits(run: Run, s: Series) -> bool:
    """Whether what only names its set rises as shares or per cent do, of the set beside it, too, and no accuracy was logged under its own name."""
    values, other = s.value[surviving(s)], series(run, "loss.eval")
    if not objectives.is_nameless(s.tag) or not len(values) or values.min() < 0:
        return False
    if any((hits := series(run, name)) is not None and not objectives.is_nameless(hits.tag) for name in ("acc.train", "acc.eval")):
        return False
    beside = other.value[surviving(other)] if other is not None and objectives.is_nameless(other.tag) else values[:0]
    return bool(values[-1] > values[0] and max(values.max(), beside.max(initial=0)) <= (1 if values[0] <= 1 else 100))


@once
def objective(run: Run) -> Series:
    """What training is judged by: the loss, else what it raises (reward, ELBO, score), negated. Raises CannotTell where neither was logged,
    or where the sign of a log-likelihood leaves open whether it was logged negated."""
    try:
        return loss_of(run)
    except CannotTell:
        cost = series(run, "loss.train")
        negated = cost if cost is not None and _is_negated(cost) else None
        s = next((s for name in RISING if (s := series(run, name)) is not None), negated)
        if s is None:
            raise
    ends = s.value[surviving(s)][[0, -1]] if surviving(s).any() else np.zeros(2)
    if objectives.is_among(s.tag, "either") and ends[1] < ends[0]:
        raise CannotTell(f"{s.tag} ends below its beginning: the log does not say whether it is to rise or to fall")
    if objectives.is_likelihood(s.tag) and surviving(s).any() and s.value[surviving(s)][0] > 0:
        raise CannotTell(f"{s.tag} begins above zero: the log does not say whether it is to rise or to fall") from None
    return replace(s, value=-s.value, rises=True)


@once
def dead_from(run: Run) -> float:
    """The first step of those at which the loss is no number any more, to its end; infinity where it is one. Whatever is computed from there on is of
    weights that are none."""
    s = next((s for n in LOSSES if (s := series(run, n)) is not None), None)
    fine = surviving(s) if s is not None else np.zeros(0, np.int64)
    later = s.step[s.alive & (s.step > (s.step[fine].max() if len(fine) else -1))] if s is not None else fine
    return float(later.min()) if len(later) else float("inf")


def rises(run: Run) -> bool:
    """Whether training is judged by something that it raises."""
    try:
        return objective(run).rises
    except CannotTell:
        return False


@once
def leading_term(run: Run) -> Series | None:
    """The term of the loss that stands for the whole, where only terms are logged."""
    terms = {p.tag: p for p in parts(run, "loss.aux")}
    tag = loss_names.lead(terms)
    return terms[tag] if tag is not None else None


def finite_objective(run: Run, least: int) -> tuple[Series, Ints]:
    """What training is judged by and its rows that count. Raises CannotTell where they are fewer than `least`."""
    return _enough(objective(run), least)


def whole_means(run: Run, least: int) -> tuple[Series, Ints]:
    """The same, of a running mean of each epoch its last values alone: the others tell of one and the same chance."""
    s, rows = finite_objective(run, least)
    return (s, rows[epoch_means.of_whole_epochs(run, s)[rows]]) if epoch_means.few_make_it(run, s).any() else (s, rows)


def finite_loss(run: Run, least: int) -> tuple[Series, Ints]:
    """The loss to look at and its rows that count. Raises CannotTell where they are fewer than `least`."""
    return _enough(loss_of(run), least)


def _enough(s: Series, least: int) -> tuple[Series, Ints]:
    rows = surviving(s)
    if len(rows) < least:
        raise CannotTell(f"only {len(rows)} finite value{'' if len(rows) == 1 else 's'} of {s.tag}")
    return s, rows
