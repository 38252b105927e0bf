"""What the latent variables of an autoencoder carry, as the program counts it, and what they are made to carry."""

from __future__ import annotations

import math

from forensics.run import settings
from forensics.run.loss_terms import kl_term
from forensics.run.metrics_in_words import LEAST, both_levels, worded
from forensics.run.robust import median
from forensics.run.usable_values import last_level, nan_from, usable
from forensics.signs.other_objectives import LN2
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

SUBJECT = "other_objectives"  # another measure of what its KL term measures
EFFECTS = {"latents_inactive": "latents"}  # a symptom of its own, for which there is no detector

# Units of the latent variable whose mean varies from sample to sample by more than 0.01 (Burda et al., arXiv 1509.00519, section 5.2)
ACTIVE = r"(^|[ /])(num |n |number of )?(active (latent )?(units?|latents?|dims?|dimensions|codes)|latent active|au)( count)?$"


# exp of the entropy with which the codes of a codebook are used: their number, were all used alike (arXiv 1711.00937)
CODES = r"\b(ppl|perplexity)$"
ONE_CODE = 1.5  # unit: nearer to one code than to two


def latents_inactive(s: Symptoms) -> Sign:
    """No unit of the latent variable is active in the last tenth of the run (arXiv 1509.00519), or one code of the codebook is used: every
    sample is given the same code. Not where the KL term says that codes tell a bit and more of their sample: a unit is counted as active from some
    variance of its mean on."""
    for pattern, none in ((ACTIVE, 0.0), (CODES, ONE_CODE)):
        found = [p for p in worded(s.run, pattern) if p.value[p.usable].min() >= (0 if none == 0 else 1)]
        if not found:
            continue
        p, sick = found[0], nan_from(s.run)
        step, x = p.step[p.usable], p.value[p.usable]
        x = x[step < sick] if sick is not None else x  # what codes are of NaN says nothing
        if len(x) < LEAST:
            return cannot_tell(f"the loss is not a number from step {sick} on, and {p.tag} was hardly logged before.")
        tenth = max(len(x) // 10, 1)
        first, last = median(x[:tenth]), median(x[-tenth:])
        text, where = (
            f"{p.tag} is {first:.3g} at first and {last:.3g} {'at the end' if sick is None else 'before the loss is NaN'}.",
            p.place(s.run, 0),
        )
        gone = last <= none and x[-1] <= none
        kl = kl_term(s.run) if none == 0 else None
        if gone and kl is not None and (told := both_levels(kl)[1]) >= LN2:
            return absent(f"{text[:-1]}, and {kl.tag} is {told:.3g}.", where=where)
        return seen(text, where=where, first=int(step[0])) if gone else absent(text, where=where)
    return cannot_tell("neither the number of active latent units was logged nor that of the codes in use.")


FREE = "free_bits free_nats kl_free_bits kl_floor"  # least nats of each latent unit (Kingma et al. 2016, arXiv 1606.04934, appendix C.8)
UNITS = "latent_dim latent latents latent_size z_dim zdim nz n_latent n_latents num_latents"
NEAR, TELLS = 0.1, 0.1  # relative: of the floor, within which single batches lie; of the loss: a floor below that holds up little


def free_bits_hold_kl(s: Symptoms) -> Sign:
    """The KL term ends on the floor that free bits give it, and that is a tenth of the loss or more: no training takes it away."""
    free, units = (next(iter(settings.named(s.run, keys)), None) for keys in (FREE, UNITS))
    floor = math.prod(n for t in (free, units) if t is not None and (n := settings.as_number(t.value)) is not None)
    kl, loss = kl_term(s.run), usable(s.run, "loss.train")[1]
    if free is None or units is None or floor <= 0:
        return cannot_tell("config names no free bits and latent units.")
    if kl is None or kl.usable.sum() < LEAST or len(loss) < LEAST:
        return cannot_tell("the KL term was not logged beside the loss.")
    level, whole = last_level(kl.value[kl.usable]), last_level(loss)
    text = f"The KL term ends at {level:.3g}, config gives {units.value} latent units {free.value} free bits each, and the loss ends at {whole:.4g}"
    if floor < TELLS * abs(whole):
        return does_not_arise(f"{text}: a small part of it.")
    return (seen if abs(level - floor) <= NEAR * floor else absent)(f"{text}.", where=free.where)
