"""The terms of a loss beside each other: one that stands still while their sum falls, since it was too small a part of it to matter."""

from __future__ import annotations

import numpy as np

from forensics.run.metrics_in_words import worded
from forensics.run.once import once
from forensics.run.robust import median
from forensics.run.series import Floats, Series, names, parts, series
from parsers import loss_names
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

RECONSTRUCTION = r"\b(recon|reconstruction|rec|nll|mse|bce|ce|cross ?entropy|x ?ent)\b"
A_WEIGHT = r"(w|weight|coef|coeff|factor|beta|lambda|scale|anneal(ing)?)"
KL_TERM = rf"^(?!.*\b(w|weight|lambda|beta) (kl|kld)\b).*\b(kl|kld|kldiv|kl div(ergence)?)\b(?!.*\b{A_WEIGHT}\b)"
LEAST = 3  # bound: values that make a median
_OTHER = "other/"
FIFTH = 0.2  # share of the values that make a level; as the plateau detector has it
SMALL = 0.1  # of the sum; paper: Wang, Teng, Perdikaris (arXiv 2001.04536) weigh terms so that none has a tenth of the others' gradients
FELL, STILL = 0.5, 0.1  # unit: the sum halves, and the term stays within a tenth
# Penalties and measures of balance have a level of their own to stay at: nothing is to be fitted there
_PENALTY = lazy_re(r"(?i)(^|[^a-z])(kld?|aux|z|reg\w*|balanc\w*|penalty|decay|entropy|commit\w*|moe|router|sparsity|gp|l[12])([^a-z]|$)")


def left_behind(run: Run, least: int) -> list[tuple[Series, int, float, float]]:
    """(term, row, level at first, level at the end) of the terms that stand still while the training loss halves."""
    total = series(run, "loss.train")
    if total is None:
        return []
    first, last = _levels(total.value[total.usable], least)
    if not 0 < last <= FELL * first:
        return []
    found = []
    for s in [p for name in ("loss.aux", "loss.part") for p in parts(run, name)]:  # a word of its own may name a term or a set of data
        begin, end = _levels(s.value[s.usable], least)
        still = begin > 0 and abs(end - begin) <= STILL * begin
        if still and begin <= SMALL * first and not is_penalty(s.tag):
            found.append((s, int(np.flatnonzero(s.usable)[0]), begin, end))
    return found


def is_penalty(tag: str) -> bool:
    """Whether the name of a term says that it is a penalty or a measure of balance."""
    return _PENALTY.search(tag) is not None


@once
def held_out(run: Run) -> list[tuple[Series, Series]]:
    """(of held-out data, of the training) of the terms that were logged of both, penalties apart, whether their names say that they are losses or not."""
    logged = [(s, loss_names.term(s.tag)) for s in parts(run, "loss.aux")]
    unsaid = [
        name for name in names(run, LEAST) if name.startswith(_OTHER) and loss_names.is_term(loss_names.term(name.removeprefix(_OTHER)))
    ]
    logged += [(s, loss_names.term(s.tag)) for name in unsaid for s in parts(run, name)]
    terms = {(loss.split, loss.core): s for s, loss in logged if loss.core and not is_penalty(s.tag)}
    return [(s, terms["train", core]) for (side, core), s in terms.items() if side == "eval" and ("train", core) in terms]


def of_a_loss(run: Run, pattern: str) -> tuple[Series, ...]:
    """The divergences and penalties of a loss that these words name: not those of a policy, which are to be near a target."""
    if any(series(run, name) is not None for name in ("rl.reward", "rl.loss_policy", "rl.loss_value", "pref.margin")):
        return ()
    return worded(run, pattern)


def kl_term(run: Run) -> Series | None:
    """The KL term of a loss: not that of a policy, and not its weight."""
    return next(iter(of_a_loss(run, KL_TERM)), None)


def _levels(x: Floats, least: int) -> tuple[float, float]:
    """Medians of the first tenth of the values and of the last fifth; NaN where there are too few."""
    if len(x) < least:
        return float("nan"), float("nan")
    return median(x[: max(len(x) // 10, 1)]), median(x[-max(int(FIFTH * len(x)), 1) :])
