"""By how much the first training losses lie above what they should equal, and which settings are that number.

A loss that is summed over the batch, the tokens, the accumulation steps or the processes, where the mean was meant, is a whole
multiple of the evaluation loss of the same weights, and of the chance level ln(classes) before training.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import bottleneck
import numpy as np

from forensics.run import settings
from forensics.run.evaluations import guessing, outcomes
from forensics.run.inputs import PREFERENCES, surviving
from forensics.run.series import Floats, Ints, Series, series
from forensics.run.settings import Setting
from parsers.tables import Run

LEAST = 1.8  # a factor of two, less what a first training loss lies below its evaluation
AT_CHANCE = 0.04  # an untrained model's loss against ln(classes): as logger_artefact's CLOSE
AT_EVALUATION = 0.1  # two losses of one model on other batches; factors that config sets are mostly two times apart
SAME = 0.25  # measured: of sums the first three are within 18 %; of one sound run whose ratio is by chance its batch size they double
ALONE = 8.0  # bound: one ratio that is smaller is a whole number by chance, as it was of a sound run with batches of two
# bound: of five ratios that change with what is learnt one is off; unit: a tenth, and half of the first loss
OFTEN, LEARNT, HALF = 5, 0.1, 0.5
EARLY, BEGINS = 3, 10  # evaluations; steps by which the log must begin

_BATCH = (
    "batch_size global_batch_size global_batch train_batch_size per_device_train_batch_size per_gpu_batch_size local_batch_size micro_batch_size "
    "micro_batch mbs batch bsz"
)
_LENGTH = "seq_len seq_length sequence_length max_seq_length max_seq_len context_length block_size n_ctx max_length"


@dataclass(frozen=True)
class Factor:
    value: int
    says: str
    where: str


@dataclass(frozen=True)
class Measured:
    """A training loss over what it should equal."""

    ratio: float
    against: str  # what it was held against, in words
    step: int
    last: int
    where: str
    near: float  # relative error that a match may have


def measured(run: Run) -> list[Measured]:
    """Chance first, then the first evaluations; empty where neither is known."""
    loss = series(run, "loss.train")
    if loss is None:
        return []
    return [m for m in (over_chance(run), _over_evaluation(run, loss)) if m is not None]


def configured(run: Run, found: Sequence[Measured]) -> tuple[Measured, Factor] | None:
    """The first ratio that is a factor which config sets."""
    factors = candidates(run)
    fits = [(abs(m.ratio / f.value - 1), m, f) for m in found if m.ratio >= LEAST for f in factors]
    near = [(off, m, f) for off, m, f in fits if off <= m.near]
    return min(near, key=lambda x: x[0])[1:] if near else None


def agreed(found: Sequence[Measured]) -> Measured | None:
    """The ratio over chance where that over the evaluations is the same: a model that is bad at first is as bad in its evaluation, and a harder set or a
    term that only training has is no factor."""
    if len(found) < 2 or min(m.ratio for m in found) < LEAST:
        return None
    return found[0] if abs(found[0].ratio / found[1].ratio - 1) <= found[1].near else None


def divided(run: Run) -> Measured | None:
    """The evaluation loss over the training loss beside it, where that is one whole factor, two and more, in all of five evaluations and more that get better, from
    where half of the first loss is left on: an overfitted model's ratio grows. None where it is not."""
    loss, held = series(run, "loss.train"), series(run, "loss.eval")
    if loss is None or held is None or not len(rows := surviving(loss)) or len(at := surviving(held)) < OFTEN:
        return None
    x, beside = held.value[at], _around(loss, rows, held.step[at])
    early = (beside > 0).all() and beside[0] >= HALF * loss.value[rows[0]]  # later on a model may be that much better on what it has seen
    if not early or not 0 < x[-1] < (1 - LEARNT) * x[0]:
        return None
    ratios = x / beside
    n = max(2, round(float(np.median(ratios))))
    if (np.abs(ratios / n - 1) > AT_EVALUATION).any() or ratios.max() > (1 + AT_EVALUATION) * ratios.min():
        return None
    first, last = int(held.step[at[0]]), int(held.step[at[-1]])
    return Measured(1 / n, f"the evaluation loss ({held.tag})", first, last, held.place(run, at[0]), AT_EVALUATION)


def candidates(run: Run) -> list[Factor]:
    """Batch sizes, accumulation, processes and lengths that config sets, their shares by process, and batch times length."""
    world, batches, lengths = (
        _whole(settings.settings(run, "world_size")),
        _whole(settings.named(run, _BATCH)),
        _whole(settings.named(run, _LENGTH)),
    )
    found = [*_shares(run), *batches, *lengths]
    for b in batches:
        found += [Factor(b.value // w.value, f"{b.says} / {w.says}", b.where) for w in world if b.value % w.value == 0]
        found += [Factor(b.value * n.value, f"{b.says} x {n.says}", b.where) for n in lengths]
    return [f for f in dict.fromkeys(found) if f.value >= 2]


def over_chance(run: Run) -> Measured | None:
    """The first training loss over ln(classes); None where it is no cross entropy, or not that of the untrained model."""
    loss = series(run, "loss.train")
    chance, told = _chance(run, loss) if loss is not None else (None, "")
    if loss is None or chance is None or not len(rows := surviving(loss)) or loss.step[rows[0]] > max(2 * loss.interval, BEGINS):
        return None
    step = int(loss.step[rows[0]])
    return Measured(
        float(loss.value[rows[0]]) / chance, f"chance level ({told} = {chance:.3g})", step, step, loss.place(run, rows[0]), AT_CHANCE
    )


def _chance(run: Run, loss: Series) -> tuple[float | None, str]:
    """What guessing costs, and how it is said: of two answers that are compared one is right, whatever the vocabulary (Rafailov et al., arXiv
    2305.18290, eq. 7: a policy that still is its reference has no margin)."""
    if any(series(run, name) is not None for name in PREFERENCES):
        return math.log(2), "ln(2)"
    return guessing(run, loss), f"ln({outcomes(run) or 0:.0f})"


def _over_evaluation(run: Run, loss: Series) -> Measured | None:
    """The first evaluation against the median of the three training losses around it, where the next evaluations are as far off."""
    held = series(run, "loss.eval")
    if held is None or not len(rows := surviving(loss)):
        return None
    ratios, near = [], []
    for i in surviving(held)[:EARLY]:
        level = float(_around(loss, rows, held.step[[i]])[0])
        if held.value[i] > 0 and level > 0:
            ratios.append(level / float(held.value[i]))
            near.append(int(i))
    if not ratios:
        return None
    apart = len(ratios) == 1 or max(ratios) > (1 + SAME) * min(ratios)
    best = 0 if min(ratios) >= LEAST else int(np.argmin(ratios))  # a factor stands in all of them
    told = f"the evaluation loss ({held.tag})"
    step = int(held.step[near[best]])
    alone = AT_CHANCE if ratios[0] >= ALONE else 0.0  # of the untrained model; later ones differ as training data are learnt by heart
    near_by = alone if apart else AT_EVALUATION
    return Measured(ratios[best], told, step, int(held.step[near[-1]]), held.place(run, near[best]), near_by)


def _around(loss: Series, rows: Ints, steps: Ints) -> Floats:
    """Median of the three training losses around each evaluation; NaN where none was logged near it."""
    rows = rows[np.argsort(loss.step[rows], kind="stable")]
    at, value = loss.step[rows], np.concatenate([[np.nan], loss.value[rows], [np.nan]])
    left = np.clip(np.searchsorted(at, steps) - 1, 0, len(at) - 1)
    right = np.minimum(left + 1, len(at) - 1)
    nearest = np.where(steps - at[left] <= at[right] - steps, left, right)
    middle = bottleneck.nanmedian(np.stack([value[nearest], value[nearest + 1], value[nearest + 2]]), axis=0)
    return np.where(np.abs(at[nearest] - steps) <= 2 * loss.interval, middle, np.nan)


def _shares(run: Run) -> list[Factor]:
    """Into how many parts config divides the batch of a step: over micro-batches, over processes."""
    return [f for what in ("accumulation", "world_size") for f in _whole(settings.settings(run, what))]


def _whole(told: Sequence[Setting]) -> list[Factor]:
    numbers = [(settings.as_number(t.value), t) for t in told]
    return [Factor(int(n), t.key, t.where) for n, t in numbers if n is not None and n == int(n) and 1 <= n < 1e9]
