"""Attention logit growth

What it is
    Attention logits run away until the softmax is one-hot: the loss spikes or stalls. Normalized queries and keys prevent it.

How it is weighed
    For it: a logged maximum logit in the hundreds and growing, or a collapsed attention entropy; no q/k norm in the config.
    Against it: q/k norm in the config. Where neither logits nor entropy were logged it is not claimed at all: a high rate
    looks the same.

What settles it
    The same steps with q/k norm, or with the rate of the attention halved.

Folklore
    ViT-22B introduced q/k norm after exactly this.
"""

from __future__ import annotations

from forensics.case import Hypothesis
from forensics.detectors import attention_logits, loss_spike
from forensics.ledger import GRAVE, Findings, Ledger, findings_of, span
from forensics.run import settings
from parsers.tables import Run

TITLE = "Attention logits running away"
PRIOR = -5.0
SETTLE = "Run the same steps with q/k norm."
INTERVENTIONS = (
    "Normalize queries and keys, or cap the logits.",
    "Lower the rate; lengthen the warmup.",
    "Log the largest logit of each layer.",
)
EXPECTS = "samples:sound raw_loss:there pairs:in_order replay:any clip:back fp32:back epsilon:back warmup:not qk_norm:learns"
NEEDS_TO_SPEAK = ("grad.norm",)


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    grown = findings_of(findings, attention_logits.Facts)
    if not grown:
        return None
    ledger = Ledger(PRIOR)
    ledger.add(16, f"{grown[0].title}.", grown)
    norm = settings.setting(run, "qk_norm")
    if norm is not None and str(norm.value).lower() in ("false", "0", "none"):
        ledger.add(5, f"Config has no q/k norm ({norm.where}).", [])
    elif norm is not None:
        ledger.add(-10, f"Config has q/k norm ({norm.where}).", [])
    else:
        ledger.cannot_tell("config does not speak of q/k norm.")
    before = [f for f in findings_of(findings, loss_spike.Facts, severity=GRAVE) if (f.first_step or 0) < (grown[0].first_step or 0)]
    if before:
        ledger.add(-4, "The loss left its level before the logits did.", before[:2])
    return ledger.hypothesis(__name__, steps=span(grown))
