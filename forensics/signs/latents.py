"""What the latent variables of an autoencoder carry, as the program counts it."""

from __future__ import annotations

from forensics.run.metrics_in_words import both_levels, worded
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

SUBJECT = "other_objectives"  # another measure of what its KL term measures
EFFECTS = {"latents_inactive": "latents"}  # a symptom of its own, for which there is no detector

# Units of the latent variable whose mean varies from sample to sample by more than 0.01 (Burda et al., arXiv 1509.00519, section 5.2)
ACTIVE = r"(^|[ /])(num |n |number of )?(active (latent )?(units?|latents?|dims?|dimensions|codes)|latent active|au)( count)?$"


# exp of the entropy with which the codes of a codebook are used: their number, were all used alike (arXiv 1711.00937)
CODES = r"\b(ppl|perplexity)$"
ONE_CODE = 1.5  # unit: nearer to one code than to two


def latents_inactive(s: Symptoms) -> Sign:
    """No unit of the latent variable is active in the last tenth of the run (arXiv 1509.00519), or one code of the codebook is used: every
    sample is given the same code."""
    for pattern, none in ((ACTIVE, 0.0), (CODES, ONE_CODE)):
        found = [p for p in worded(s.run, pattern) if p.value[p.usable].min() >= (0 if none == 0 else 1)]
        if not found:
            continue
        first, last = both_levels(found[0])
        text, where = f"{found[0].tag} is {first:.3g} at first and {last:.3g} at the end.", found[0].place(s.run, 0)
        gone = last <= none and found[0].value[found[0].usable][-1] <= none
        return seen(text, where=where, first=int(found[0].step[found[0].usable][0])) if gone else absent(text, where=where)
    return cannot_tell("neither the number of active latent units was logged nor that of the codes in use.")
