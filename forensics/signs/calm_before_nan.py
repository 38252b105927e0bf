"""Whether loss and gradient norm were calm before the first value that is not finite, or had grown."""

from __future__ import annotations

from forensics.detectors import nonfinite
from forensics.run.usable_values import WORDS, lacking, usable
from forensics.signs.not_finite import first_of, nothing
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

SUBJECT = "not_finite"  # one half of it

RISEN = 1.1  # times the highest of the fifty values before: no more than the next record of the same scatter
CALM_LOSS = 1.3  # times the usual loss: below what the detector of the initial loss takes for another state


def nan_out_of_calm_gradient(s: Symptoms) -> Sign:
    """The gradient norm keeps to its usual range until the first NaN; absent: it grows before it, an explosion."""
    return _calm(s, "grad", "grad.norm", nonfinite.CALM)


def nan_out_of_calm_loss(s: Symptoms) -> Sign:
    """The loss keeps to its ordinary scatter until the first NaN; absent: it climbs before it."""
    return _calm(s, "loss", "loss.train", CALM_LOSS)


def _calm(s: Symptoms, key: str, name: str, most: float) -> Sign:
    """How loss or gradient norm did in the five values before the first NaN."""
    f, word = first_of(s), WORDS[name]
    if f is None:
        return nothing()
    ratio, before, usual, highest = (getattr(f.facts, f"{key}_{what}") for what in ("ratio", "before", "usual", "highest"))
    if ratio is None or before is None or highest is None:
        step, x = usable(s.run, name)
        few = x[step < (f.facts.first or 0)]
        if len(few) > 1 and 0 < few[0] * nonfinite.CALM <= few[1:].max():  # what shows in two values needs no more
            told = f"{few[0]:.3g} at first, {few[1:].max():.3g} before step {f.facts.first}"
            return absent(f"{word[0].upper()}{word[1:]} has grown before: {told}.", [f])
        return cannot_tell(lacking(s.run, 8, name) or f"too few values of {word} come before step {f.facts.first}.")
    told = f"{before:.3g} at most in the five values before step {f.facts.first}, {usual:.3g} usually"
    if ratio < most or before <= RISEN * highest:
        return seen(f"{word[0].upper()}{word[1:]} is calm until then: {told}.", [f], first=f.facts.first, last=f.facts.first)
    return absent(f"{word[0].upper()}{word[1:]} has grown before: {told}.", [f])
