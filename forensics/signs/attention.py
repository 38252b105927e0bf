"""Attention logits and entropy, where they were logged."""

from __future__ import annotations

import numpy as np

from forensics.detectors import attention_logits
from forensics.run.robust import median
from forensics.run.usable_values import last_level
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen


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
