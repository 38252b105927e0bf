"""Attention logits and entropy, where they were logged."""

from __future__ import annotations

import numpy as np

from forensics.detectors import attention_logits, loss_spike
from forensics.findings import GRAVE
from forensics.run.robust import median
from forensics.run.usable_values import lacking, last_level
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from forensics.spikes.selected import LEAST


def attention_logits_grew(s: Symptoms) -> Sign:
    """The largest attention logit runs away or the attention entropy collapses (ViT-22B, arXiv 2302.05442)."""
    if found := s.of(attention_logits.Facts):
        f = found[0]
        return seen(f"{f.title}.", found, first=f.facts.step, last=f.last_step)
    for name, word in (("attn.max_logit", "largest attention logit"), ("attn.entropy", "attention entropy")):
        logged = attention_logits.worst(s.run, name)
        x = logged.value[logged.usable] if logged is not None else np.zeros(0)
        if len(x) >= attention_logits.LEAST:
            return absent(f"The {word} goes from {np.median(x[:5]):.3g} to {last_level(x):.3g}, no runaway.")
    return cannot_tell(f"neither attention logits nor attention entropy were logged with {attention_logits.LEAST} finite values.")


def attention_saturated_from_start(s: Symptoms) -> Sign:
    """The largest attention logit of an untrained model is above 100 from the first values to the last: weights or scale are too large."""
    if found := s.of(attention_logits.Saturated):
        return seen(f"{found[0].title}.", found, first=found[0].first_step, last=found[0].last_step)
    logged = attention_logits.worst(s.run, "attn.max_logit")
    x = logged.value[logged.usable] if logged is not None else np.zeros(0)
    if len(x) < attention_logits.LEAST:
        return cannot_tell(f"attention logits were not logged with {attention_logits.LEAST} finite values.")
    first = median(x[:5])
    if first >= attention_logits.HUGE:
        return cannot_tell(
            f"nothing shows that the model was untrained when its largest attention logit was {first:.3g}, or it grew from there."
        )
    return absent(f"The largest attention logit begins at {first:.3g}.")


def loss_left_before_logits(s: Symptoms) -> Sign:
    """The loss spiked before the attention logits ran away."""
    grown = s.of(attention_logits.Facts)
    if not grown:
        return does_not_arise("no runaway of attention logits was logged, so nothing comes before it.")
    at = grown[0].facts.step
    spikes = s.of(loss_spike.Facts, severity=GRAVE)
    if before := [f for f in spikes if f.facts.start < at]:
        text = f"The loss spiked at step {before[0].facts.start}, before the attention passed its limit at step {at}."
        return seen(text, [before[0], grown[0]], first=before[0].facts.start, last=at)
    if not spikes and (why := lacking(s.run, LEAST)):
        return cannot_tell(why)
    if not spikes:
        return absent(f"The loss does not spike before the attention passes its limit at step {at}, nor after it.", grown)
    return absent(
        f"The loss first spikes at step {spikes[0].facts.start}, the attention passes its limit at step {at}.", [spikes[0], grown[0]]
    )
