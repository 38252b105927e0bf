"""A restart after which a model is worse than one that knows nothing: what it learnt is held against other targets."""

from __future__ import annotations

import numpy as np

from forensics.detectors import plateau, resume_break
from forensics.run.inputs import is_policy
from forensics.run.levels import LEVEL, ROOM
from forensics.run.robust import median
from forensics.run.series import series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

SUBJECT = "resumed"  # the other half of it


def worse_than_untrained_after_restart(s: Symptoms) -> Sign:
    """The first loss after a restart lies above all of the first losses of the run, and falls from there: weights that were not loaded would
    stand where the run began, while what was learnt of other ids, labels or targets is confidently wrong. Lost moments of an optimizer take
    steps to do harm."""
    if len(s.run.attempts) < 2:
        return does_not_arise("the run was not restarted.")
    loss, up = series(s.run, "loss.train"), [f for f in s.of(resume_break.Facts) if f.facts.up]
    if loss is None:
        return cannot_tell("the training loss was not logged.")
    if is_policy(s.run):
        return does_not_arise("a policy has no targets, and its loss need not fall.")
    if not up:
        return does_not_arise("the loss is not seen to stand higher after a restart.")
    facts = up[0].facts
    began, after = loss.value[(loss.attempt == loss.attempt[0]) & loss.usable], loss.value[(loss.attempt == facts.attempt) & loss.usable]
    if min(len(began), len(after)) < plateau.LEAST_VALUES or loss.step[0] > 0.1 * loss.step[-1]:
        return cannot_tell("too few losses of the beginning of the run, or after its restart, were logged.")
    first, now, last = float(np.max(began[:LEVEL])), float(after[0]), median(after[-LEVEL:])
    text = f"The first loss after the restart at step {facts.step} is {now:.4g}; the run began with {first:.4g}, and ends at {last:.4g}."
    falls = last < (1 - ROOM) * now and now == float(after.max())
    return seen(text, up, first=facts.step) if now > first > 0 and falls else absent(text, up)
