"""Labels wrong

What it is
    Targets that have nothing to do with the inputs, through the whole run: shuffled, shifted, from another file. The loss
    stands at chance, or falls only by rote.

How it is weighed
    For it: a loss that stays at ln(classes) or ln(vocabulary) while rate and gradient look ordinary; evaluation at chance.
    Against it: a rate so low that nothing could move, a loss that was never near chance.

What settles it
    Overfitting one batch: a model that can, with an evaluation that stays at chance, has wrong labels.

Folklore
    "Overfit a single batch first." "Assume a bug."
"""

from __future__ import annotations

import numpy as np

from forensics.case import Hypothesis
from forensics.detectors import loss_spike, nonfinite, plateau, train_eval_gap
from forensics.ledger import GRAVE, Findings, Ledger, findings_of, span
from forensics.run.recipe import recipe
from forensics.run.series import series
from parsers.tables import Run

TITLE = "Labels or targets wrong"
PRIOR = -6.0
SETTLE = "Overfit one batch: then compare its inputs with its labels by eye."
INTERVENTIONS = ("Print ten inputs beside their labels.", "Check the shift between inputs and targets, and the mask.", "Overfit one batch.")
EXPECTS = "tensors:moved raw_loss:there pairs:strangers old_evaluation:same warmup:not qk_norm:not range:neither by_heart:can seeds:all"
NEEDS_TO_SPEAK = ("loss.eval", "grad.norm")
ARMS = ("heart",)
OUTCOMES = {"heart: learnt": 2.0, "heart: no": -4.0}


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    stuck = findings_of(findings, plateau.Facts, severity=["warning"])
    never = _never_learned(run)
    if not stuck and not never:
        return None
    ledger = Ledger(PRIOR)
    if stuck:
        facts = stuck[0].facts
        # where chance level is not known, data without a signal, a dead and a frozen model look the same
        ledger.add(3 if facts.chance is None else 6, f"The loss falls by {max(facts.fall, 0):.1%} in the whole run.", stuck)
        if facts.at_chance:
            # where no gradient was logged, a dead or frozen model looks the same: the clue is worth less
            ledger.add(7 if series(run, "grad.norm") else 4, "It stays at chance level.", stuck)
        elif facts.chance is None:
            ledger.cannot_tell("config names neither vocabulary nor classes, so chance level is not known.")
    if never:
        text, weight = never
        ledger.add(8 if stuck else weight, text, findings_of(findings, train_eval_gap.Facts))
    _rate_and_gradient(run, ledger)
    wild = [f for f in findings_of(findings, loss_spike.Facts, severity=GRAVE) if f.facts.top > 2 * f.facts.level]
    if wild:
        ledger.add(-8, "The loss spikes to more than twice its level: instability, which wrong labels do not make.", wild[:3])
    dead = findings_of(findings, nonfinite.Facts, severity=["critical"])
    if dead:
        ledger.add(-8, "Values become NaN, which wrong labels do not make.", dead[:1])
    for kind, text in (
        ("layer_gradients", "Layers get no gradient: that is a separate cause."),
        ("divergence", "The loss climbs, which wrong labels do not make."),
    ):
        if findings_of(findings, kind):
            ledger.add(-8, text, findings_of(findings, kind))
    return ledger.hypothesis(__name__, steps=span([*stuck, *findings_of(findings, train_eval_gap.Facts)]))


def _rate_and_gradient(run: Run, ledger: Ledger) -> None:
    r = recipe(run)
    if r.ratio is None:
        ledger.cannot_tell("neither log nor config says the learning rate.")
    elif r.ratio <= 0.03:
        ledger.add(-14, f"The rate never exceeds {r.rate:.2g}: nothing could move.", [])
    elif r.ratio >= 10:
        ledger.add(-8, f"The rate of {r.rate:.2g} is {r.ratio:.0f} times the usual, which alone can keep a loss at chance.", [])
    else:
        ledger.add(2, f"The rate is ordinary ({r.rate:.2g} at its peak).", [])
    grad = series(run, "grad.norm")
    if grad is None:
        ledger.cannot_tell("the gradient norm was not logged: dead or frozen layers would look the same.")
    if grad is not None and np.isfinite(grad.value).any():
        usual = float(np.nanmedian(grad.value[np.isfinite(grad.value)]))
        ledger.add(
            2 if usual > 1e-3 else -4,
            f"Gradients flow (norm {usual:.2g})." if usual > 1e-3 else f"Hardly any gradient (norm {usual:.2g}).",
            [],
        )


def _never_learned(run: Run) -> tuple[str, float] | None:
    """Evaluation that was never better than at the beginning, while training falls: memorized. None when it was."""
    held, train = series(run, "loss.eval"), series(run, "loss.train")
    if held is None or train is None or len(held) < 4 or len(train) < 20:
        return None
    x = held.value[np.isfinite(held.value)]
    begun = float(np.median(train.value[:10]))
    if begun <= 0:  # a share of it says nothing
        return None
    left = float(np.median(train.value[-10:])) / begun
    climbs = len(x) >= 8 and float(np.median(x[-3:])) > 1.03 * x[0]
    fell = left < 0.8 or (left < 0.95 and climbs)  # a little rote shows in an evaluation that gets worse
    late = x[0] < 0.8 * float(np.median(train.value[:5])) if len(x) else False  # by its first time much was learnt
    if len(x) >= 4 and fell and not late and x.min() > 0.97 * x[0]:
        text = f"Evaluation never gets better than at the beginning ({x[0]:.4g}), while training loss falls: memorized."
        return text, 18.0 if left < 0.8 else 11.0
    return None
