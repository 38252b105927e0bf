"""What a model that learns without labels makes of its inputs: whether they still differ."""

from __future__ import annotations

import math

import numpy as np

from forensics.run import settings
from forensics.run.evaluations import shares
from forensics.run.metrics_in_words import moved_from, stays_from, worded
from forensics.run.robust import median
from forensics.run.series import Floats, series
from forensics.run.usable_values import first_level, last_level, usable
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen
from parsers.tables import Run

EFFECTS = {"representations_alike": "other/embed_std"}  # a symptom of its own, for which there is no detector

SPREAD = (
    r"^(?!.*\b(pixel|grad|reward|weight|param)s?\b)(?=.*\b(embed(ding)?s?|emb|out(put)?s?|feat(ure)?s?|repr\w*|proj\w*)\b)"
    r"(?=.*\b(std|stddev|spread)\b)"
)
LATENT = r"^(?!.*\b(grad|weight|param|post\w*|prior)s?\b)(?=.*\b(z|zs|latents?)\b)(?=.*\b(std|stddev|spread)\b)"  # of autoencoders, too, whose noise it is
COSINE = r"^(?!.*\b(pos\w*|pair\w*|target|teacher|grad\w*)\b)(?=.*\bcos(ine)?\b)(?=.*\b(mean|avg|average)\b)"  # between items or embeddings
DIVERGENCE = r"\b(kl|kld|elbo|vae)\b"
WIDTH = "proj_dim projection_dim proj_out_dim out_dim output_dim feature_dim feat_dim embed_dim embedding_dim rep_dim dim"
DECADE = 0.1  # unit: of the widest spread so far, or of 1 / sqrt(d), which vectors of length one that point everywhere have (arXiv 2011.10566, fig. 2)
HALF = 0.5  # bound: of the first spread
COMMON = math.sqrt(0.5)  # bound: of the first spread; half of the squared length of a vector is then the same for every input
BOUND, NEAR = -1.0, 0.01  # the cosine of vectors that agree, negated; one in a hundred
ALIKE = 0.98  # bound: the mean cosine of vectors that differ by 11 degrees; untrained ones that share a mean reach 0.9
LOST, LEAST = 0.1, 4  # unit: of the best hits; three values make the last level, and one stands before it


def representations_alike(s: Symptoms) -> Sign:
    """The spread of embeddings over a batch falls to a tenth of what it was, or of 1 / sqrt(d); or it halves while a loss that is a negated cosine
    reaches its bound of -1; or it falls below seven tenths while the loss falls and the share that neighbours or a probe get right falls, too:
    every input is given the same embedding. Scores of untrained features on easy data stay good meanwhile."""
    found = worded(s.run, SPREAD) or (() if worded(s.run, DIVERGENCE) else worded(s.run, LATENT))
    if not found:
        for p in worded(s.run, COSINE):
            first, last = moved_from(p)
            text = f"{p.tag} goes from {first:.3g} to {last:.3g}"
            return seen(f"{text}: all point the same way.", first=stays_from(p, ALIKE)) if last >= ALIKE else absent(f"{text}.")
        return cannot_tell("the spread of embeddings over a batch was not logged.")
    p = found[0]
    x, (first, last) = p.value[p.usable], moved_from(p)
    width = settings.named(s.run, WIDTH)
    d = settings.as_number(width[0].value) if width else None
    text = f"{p.tag} goes from {first:.3g} to {last:.3g}"
    loss = usable(s.run, "loss.train")[1]
    at_bound = len(loss) > 0 and float(loss.min()) >= BOUND - NEAR and median(loss[-5:]) <= BOUND + NEAR
    if at_bound and last < HALF * first:
        return seen(f"{text}, while the loss reaches {loss[-1]:.4g}, the least that it can be.", first=stays_from(p, HALF * first))
    if last < COMMON * first and (worse := _tried_worse(s.run, loss)):
        return seen(f"{text}, while {worse}.", first=stays_from(p, COMMON * first))
    if d is not None and d > 1 and first <= 2 / math.sqrt(d):
        text, few = f"{text}; vectors of length one with {d:g} numbers that differ have {1 / math.sqrt(d):.3g}", DECADE / math.sqrt(d)
        if last < few:
            return seen(f"{text}.", first=stays_from(p, few))
    return seen(f"{text}.", first=stays_from(p, DECADE * float(x.max()))) if last < DECADE * float(x.max()) else absent(f"{text}.")


def _tried_worse(run: Run, loss: Floats) -> str:
    """In words: the loss falls and the share that is right by neighbours or a probe falls with it, by a tenth of its best."""
    hits = series(run, "acc.eval")
    x = shares(hits.value[hits.usable]) if hits is not None and hits.usable.any() else np.zeros(0)
    if hits is None or len(x) < LEAST or len(loss) < LEAST or last_level(loss) >= first_level(loss):
        return ""
    best, last = float(x.max()), last_level(x)
    return f"the loss falls and {hits.tag} falls, too, from {best:.3g} to {last:.3g}" if last < (1 - LOST) * best else ""
