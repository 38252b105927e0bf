"""Decay that Adam adds to the gradient (L2), where it is divided by the gradient's own size: what it leaves of the weights and of the fit."""

from __future__ import annotations

import numpy as np

from forensics.checkpoints import first_norm
from forensics.detectors.plateau import LEAST_VALUES
from forensics.run import settings, weight_norms
from forensics.run.inputs import is_policy
from forensics.run.metrics_in_words import probability, worded
from forensics.run.recipe import LANGUAGE
from forensics.run.robust import median
from forensics.run.series import series
from forensics.run.usable_values import first_level, lacking, last_level, usable
from forensics.run.usual_rate import family, is_set, optimizer, tuned
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

SUBJECT = "parameters"  # a part of it
EFFECTS = {"decay_outweighs_gradient": "loss.train"}  # a symptom of its own, for which there is no detector
# bound: a hundred times an L2 factor of 1e-3, which is large; Adam divides it by the gradient's own size (Loshchilov and Hutter, arXiv 1711.05101)
OF_L2 = 0.1
UNFIT = 0.9  # bound: of the first loss; what stands above has not fitted the data that it was given
ABOVE = 1.1  # unit: a tenth above what one constant answer costs
_DECOUPLED = lazy_re(r"(?i)adamw|lion|decoupled|lamb|adafactor|muon|shampoo|sophia")
_BASE_RATE = (
    r"^(?:train(?:ing)?[ /])?(?:base rate|prevalence|(?:pos|positive)s?(?: (?:class|label)s?)? (?:rate|share|frac|fraction|ratio))$"
)
_BINARY = lazy_re(r"(?i)(^|[^a-z])(bce|binary|log_?loss)")
_WEIGHS = "pos_weight class_weight class_weights scale_pos_weight focal_gamma focal_alpha"


def decay_outweighs_gradient(s: Symptoms) -> Sign:
    """A decay of a tenth or more that nothing says is decoupled, beside what it does: all weights stay smaller than usual layers begin while the training
    data are not fitted, or a binary cross entropy ends above what the share of the positives costs as a constant answer."""
    told, decay = settings.setting(s.run, "weight_decay"), settings.number(s.run, "weight_decay")
    if told is None or decay is None:
        return cannot_tell("config does not name the weight decay.")
    if is_policy(s.run) or _decoupled(s.run):
        return does_not_arise("the decay is decoupled from the gradient, or a policy is trained.")
    if decay < OF_L2:
        return absent(f"A weight decay of {decay:g} is no more than what is added to gradients.", where=told.where)
    if why := lacking(s.run, LEAST_VALUES, "loss.train"):
        return cannot_tell(why)
    found = _small(s.run) or (_worse_than_constant(s.run) if family(s.run) == "adam" else "")
    text = f"A weight decay of {decay:g} is set, and nothing says that it is decoupled from the gradient"
    return (
        seen(f"{text}; {found}.", where=told.where)
        if found
        else absent(f"{text}; what it would do to the fit does not show.", where=told.where)
    )


def _decoupled(run: Run) -> bool:
    """Whether the optimizer takes the decay of the weights themselves; language models' frameworks call AdamW Adam, and SGD divides by nothing."""
    name = optimizer(run)
    by_name = name is not None and (_DECOUPLED.search(str(name.value)) or family(run) == "sgd")
    return bool(by_name) or run.framework in LANGUAGE or run.framework == "hf-trainer" or tuned(run)


def _small(run: Run) -> str:
    """Weights below what layers begin with, beside a loss that has hardly fallen."""
    logged, least, (_, loss) = weight_norms.whole(run), first_norm.least(run), usable(run, "loss.train")
    if logged is None or not least or not np.isfinite(logged[1]).all() or len(logged[1]) < weight_norms.LEAST:
        return ""
    norm, first, last = float(logged[1].max()), first_level(loss), last_level(loss)
    if norm >= least or last < UNFIT * first:
        return ""
    return f"the norm of all weights stays below {norm:.3g}, where usual ones of these shapes begin at {least:.3g}, and the loss goes from {first:.4g} to {last:.4g}"


def _worse_than_constant(run: Run) -> str:
    """A training loss that one constant answer would beat."""
    rate = probability(worded(run, _BASE_RATE))
    logged, loss = series(run, "loss.train"), usable(run, "loss.train")[1]
    tag = logged.tag if logged is not None else ""
    if rate is None or not _BINARY.search(tag) or any(is_set(w) for w in settings.named(run, _WEIGHS)):
        return ""
    share = median(rate.value[rate.usable])
    if not 0 < share < 1:
        return ""
    constant, lowest = -share * np.log(share) - (1 - share) * np.log(1 - share), median(loss[len(loss) // 2 :])
    if lowest <= ABOVE * constant:
        return ""
    return f"{tag} ends at {lowest:.3g}, and the share of the positives ({share:.3g}) as the answer to all costs {constant:.3g}"
