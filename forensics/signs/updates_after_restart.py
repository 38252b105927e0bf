"""The size of updates on both sides of a restart: an optimizer that lost its moments takes larger ones at the same rate and gradient."""

from __future__ import annotations

import numpy as np

from forensics.run.metrics_in_words import together
from forensics.run.robust import median
from forensics.run.series import Series, parts, series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

EFFECTS = {"updates_leap_at_restart": "upd.norm|upd.ratio"}  # a symptom of its own, for which there is no detector

# unit: Adam's first update moves each weight by the rate, later ones by the rate times |m|/sqrt(v), which is 0.5 or less where gradients are noise
# (Kingma & Ba, arXiv:1412.6980, section 2.1)
LEAPS = 1.5
NEAR, LATER = 3, 5  # bound: values of which one odd one does not move the median; the level that the updates come back to
GRADIENT = 1.25  # of the gradient norm; what moves with it needs no other reason


def updates_leap_at_restart(s: Symptoms) -> Sign:
    """At a restart the updates, over the rate, become half again as large at once and come down within the run, while the gradient stays as it was."""
    if len(s.run.attempts) < 2:
        return does_not_arise("the run was not restarted.")
    logged = [p for name in ("upd.norm", "upd.ratio") for p in parts(s.run, name) if (p.value[p.usable] > 0).all()]
    told = ""
    for p in logged:
        for index in dict.fromkeys(p.attempt[p.usable].tolist()):
            size = _over_rate(s, p)
            if size is None or (sides := _sides(p, size, index)) is None:
                continue
            step, before, after, later = sides
            text = f"{p.tag}, over the learning rate, is {after / before:.3g} times as large behind the restart at step {step} as before it"
            text += f", and {later / before:.3g} times later"
            moved = _gradient(s, step, int(p.interval) * LATER)
            if after >= LEAPS * before and later < after / LEAPS**0.5 and moved is not None and moved < GRADIENT:
                return seen(f"{text}, while the gradient norm stays where it was.", where=_place(s, p, step), first=step)
            told = told or text + (f"; the gradient norm moves {moved:.3g} times" if moved is not None else "")
    if told:
        return absent(f"{told}.")
    return cannot_tell("neither the size of updates nor the learning rate was logged on both sides of a restart.")


def _over_rate(s: Symptoms, p: Series) -> tuple[np.ndarray, np.ndarray] | None:
    """(steps, sizes of the updates over the rate there)."""
    rate = series(s.run, "lr")
    if rate is None:
        return None
    step, (size, at) = together(p, rate)
    good = at > 0
    return (step[good], size[good] / at[good]) if good.any() else None


def _sides(p: Series, size: tuple[np.ndarray, np.ndarray], index: int) -> tuple[int, float, float, float] | None:
    """(first step of an attempt, level before it, right behind it, and at its end); None for the first attempt, and by few values."""
    begins = int(p.step[p.usable & (p.attempt == index)][0])
    step, x = size
    before, after = x[step < begins][-LATER:], x[step >= begins]
    if len(before) < LATER or len(after) < NEAR + LATER:
        return None
    return begins, median(before), median(after[:NEAR]), median(after[-LATER:])


def _gradient(s: Symptoms, step: int, reach: int) -> float | None:
    """By what factor the gradient norm differs across a step; None where it was not logged there."""
    g = series(s.run, "grad.norm")
    if g is None:
        return None
    before, after = (
        g.value[g.usable & side][part] for side, part in ((g.step < step, slice(-LATER, None)), (g.step >= step, slice(LATER)))
    )
    if min(len(before), len(after)) < NEAR or g.step[g.usable & (g.step < step)][-1] < step - 2 * reach:
        return None
    low, high = sorted((median(before), median(after)))
    return high / low if low > 0 else None


def _place(s: Symptoms, p: Series, step: int) -> str:
    return p.place(s.run, int(np.flatnonzero(p.step >= step)[0]))
