"""Whether a run begins with a model that knows nothing, or goes on from a trained one, by its first loss."""

from __future__ import annotations

import math

from forensics.run import settings
from forensics.run.evaluations import guessing, shares
from forensics.run.levels import LEVEL
from forensics.run.robust import median
from forensics.run.series import Series, series
from parsers.lazy_regex import lazy_re
from parsers.loss_names import is_likelihood
from parsers.tables import Run

TWO = math.log(2)  # bound: nats; nobody guesses among fewer than two
UNTRAINED = math.log(75.2)  # paper: nats a token; the worst of GPT-2's smallest model on text it never saw (Radford 2019, table 3)
FAR_BELOW = 0.5  # bound: half of what guessing costs is no guess
HALF, NEARLY = 0.5, 0.9  # unit: right more often than not; bound: nine of ten hits that there ever are
GUESSES = 0.52  # statistical: right in one half, and two standard errors of 600 samples' accuracy


_BEGINS = f"{settings.RESUMED} init_checkpoint init_ckpt init_from init_model load_from load_ckpt load_model finetune_from fine_tune_from start_from"
_WEIGHTS = lazy_re(r"(?i)[\w)]\.(?:pth?|ckpt|bin|safetensors|h5|hdf5|keras|npz|pkl|msgpack|tar|zip)[\"']?$")


def is_trained(run: Run, s: Series, first: float, chance: float | None) -> bool:
    """Whether the first loss is far below what guessing costs: a run that goes on from a trained model. A classifier's config may name
    the vocabulary of its text, so that there accuracy decides. A loss below what the wrong answers beside it cost is of another unit and tells nothing."""
    if not is_likelihood(s.tag) or first <= 0:
        return False
    hits = series(run, s.name.replace("loss.", "acc."))
    if (
        hits is not None and first < (1 - median(shares(hits.value)[:LEVEL])) * TWO
    ):  # who names a wrong class gives the right one half at most
        return False
    a = series(run, "acc.eval") or series(run, "acc.train")
    guesses = a is not None and float(shares(a.value)[0]) <= GUESSES
    return first < FAR_BELOW * (TWO if guesses or not chance else chance)


def begins_from_weights(run: Run) -> bool:
    """Whether a setting names the file of the whole model that training goes on from; a backbone's weights are a part of one."""
    return any(isinstance(s.value, str) and _WEIGHTS.search(s.value) for s in settings.named(run, _BEGINS))


def begins_trained(run: Run) -> bool:
    """Whether the first training loss is far below a guess, or the first accuracy nearly as high as any: a trained model is tuned."""
    s = series(run, "loss.train")
    if s is None or not s.usable.any():
        return knew_at_first(run)
    return is_trained(run, s, float(s.value[s.usable][0]), guessing(run, s)) or knew_at_first(run)


def knew_at_first(run: Run) -> bool:
    """Whether the first accuracy is right more often than not, and nearly as often as any later one."""
    a = series(run, "acc.eval") or series(run, "acc.train")
    if a is None or a.usable.sum() < 2:
        return False
    x = shares(a.value[a.usable])
    return bool(x[0] > HALF and x[0] >= NEARLY * x.max())


def from_scratch(s: Series, first: float, chance: float | None) -> bool:
    """Whether a loss begins as high as guessing: the model knew nothing."""
    return is_likelihood(s.tag) and first >= (0.9 * chance if chance else UNTRAINED)
