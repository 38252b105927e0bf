"""What the latent variables of an autoencoder carry, as the program counts it."""

from __future__ import annotations

from forensics.run.metrics_in_words import both_levels, worded
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

SUBJECT = "other_objectives"  # another measure of what its KL term measures
EFFECTS = {"latents_inactive": "latents"}  # a symptom of its own, for which there is no detector

# Units of the latent variable whose mean varies from sample to sample by more than 0.01 (Burda et al., arXiv 1509.00519, section 5.2)
ACTIVE = r"(^|[ /])(num |n |number of )?(active (latent )?(units?|latents?|dims?|dimensions|codes)|latent active|au)( count)?$"


def latents_inactive(s: Symptoms) -> Sign:
    """No unit of the latent variable is active in the last tenth of the run: every sample is given the same code (arXiv 1509.00519)."""
    found = [p for p in worded(s.run, ACTIVE) if p.value[p.usable].min() >= 0]
    if not found:
        return cannot_tell("the number of active latent units was not logged.")
    first, last = both_levels(found[0])
    text, where = f"{found[0].tag} is {first:.3g} at first and {last:.3g} at the end.", found[0].place(s.run, 0)
    none = last == 0 and not found[0].value[found[0].usable][-1]
    return seen(text, where=where, first=int(found[0].step[found[0].usable][0])) if none else absent(text, where=where)
