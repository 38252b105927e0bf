"""NaN from a layer

What it is
    A formula in the model: log of zero, square root at zero (its gradient is infinite), division by a vanishing norm, overflow
    in an exponential. The state of the weights makes it, whatever the batch.

How it is weighed
    Like nan_from_sample, but for it: every value after the first is NaN, a quantity that drifted towards its edge before (a
    loss near zero, a norm that falls), finite loss with a NaN gradient norm.

What settles it
    Replaying the step with another batch: NaN again means the layer.

Folklore
    "Numerics in custom layers: log(0), divide by zero, sqrt of negative; add epsilons."
"""

from __future__ import annotations

import re

import numpy as np

from forensics.case import Hypothesis
from forensics.detectors import nonfinite
from forensics.ledger import Findings, Ledger, findings_of, span
from forensics.run import settings
from forensics.run.endings import events
from forensics.run.series import series
from forensics.signs.before_nan import calm, overflowed
from parsers.tables import Run

TITLE = "NaN from a layer's formula"
_BACKWARD = re.compile(r"Backward\d*'? returned nan|log\(0\)|divide by zero|detect_anomaly", re.I)
PRIOR = -7.5
SETTLE = "Replay that step with another batch: NaN again means the layer."
INTERVENTIONS = (
    "Run the step with torch.autograd.set_detect_anomaly(True): it names the operation.",
    "Guard logs, roots and divisions with an epsilon; mind the gradient at the edge.",
)
EXPECTS = "samples:sound raw_loss:there pairs:in_order replay:any clip:back fp32:back third:back"
NEEDS_TO_SPEAK = ("grad.norm", "loss_scale", "checkpoints")
OUTCOMES = {"numerics: full precision": 24.0}


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    dead = [f for f in findings_of(findings, nonfinite.Facts) if f.facts.metric in ("loss.train", "grad.norm")]
    named = [e for e in events(run, "nonfinite", "traceback") if _BACKWARD.search(e["text"])]
    if not named and not any(f.severity == "critical" or not f.facts.recovered for f in dead):
        return None
    dead = dead or findings_of(findings, nonfinite.Facts)
    facts = dead[0].facts if dead else nonfinite.Facts("", None, 0, None)
    ledger = Ledger(PRIOR)
    if named:
        ledger.add(20, f"The log names the operation: {named[0]['text'].splitlines()[-1][:120]}", dead)
    grad = [f for f in dead if f.facts.metric == "grad.norm"]
    loss = [f for f in dead if f.facts.metric == "loss.train"]
    if facts.first is not None and not facts.said:
        ledger.add(5, f"The {'loss' if loss else 'gradient norm'} is NaN or infinite from one value to the next.", dead)
        calm(run, ledger, dead, findings, weight=6)
    if facts.recovered:
        ledger.add(-8, "The loss is finite again afterwards, with no restart: other batches pass at this state.", dead)
    elif not named:
        ledger.add(1, "Every value after the first is NaN.", dead)
    if (over := overflowed(findings)) is not None:
        ledger.add(-8, "The norm is infinite, not NaN, and the loss stays finite: an overflow, not an undefined formula.", [over])
    if settings.precision(run) != "fp16" and grad and loss and (grad[0].first_step or 0) < (loss[0].first_step or 0):
        ledger.add(
            6, "The gradient became NaN while the loss was still finite: a derivative that is infinite at its edge.", [grad[0], loss[0]]
        )
    drift = _drift(run, facts.first) if facts.first is not None else ""
    if drift:
        ledger.add(4, drift, dead)
    return ledger.hypothesis(__name__, steps=span(dead))


def _drift(run: Run, step: int) -> str:
    """A loss or norm that fell by more than ten times on its way to the NaN is near an edge."""
    for name, word in (("grad.norm", "gradient norm"), ("loss.train", "loss")):
        s = series(run, name)
        if s is None:
            continue
        x = s.value[(s.step < step) & np.isfinite(s.value) & (s.value > 0)]
        if len(x) >= 20 and np.median(x[-5:]) < 0.1 * np.median(x[: len(x) // 2]):
            return f"The {word} had fallen to {np.median(x[-5:]):.2g} before: something runs towards zero."
    return ""
