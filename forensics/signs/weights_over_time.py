"""Norms of the weights over time: weights that shrink, which the decay does and no gradient, those that leap, which no update does, and those that stop."""

from __future__ import annotations

import numpy as np

from forensics.detectors import restart
from forensics.run import settings, weight_norms
from forensics.run.levels import ROOM
from forensics.run.robust import median
from forensics.run.series import Floats, Ints, Series, parts
from forensics.run.usable_values import first_level, lacking, last_level, usable
from forensics.run.usual_rate import is_set
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re

SUBJECT = "parameters"  # a part of it
EFFECTS = {
    "weights_shrink": "param.norm",
    "weights_leap": "param.norm|param.norm_layer",
    "weights_stop_moving": "param.norm|param.norm_layer",
}  # symptoms of their own, for which there is no detector

# Of the first norm: weights move away from where they began, further the longer they train (arXiv 1705.08741, section 4), which lengthens them; a
# decay of which rate x decay x steps is 0.4 leaves two thirds of what the gradient does not build again
SHRUNK = 2 / 3
LEARNT = 0.1  # unit: of the first loss; a model that has learnt its task may well do with smaller weights (grokking: arXiv 2201.02177)
FOR_A_QUARTER = 5  # bound: values of the loss in a quarter of the run; a median that two odd ones do not move
# measured: of 38 runs that log a norm the largest move is at most twice any before it, and 700 times where a bit of a weight was turned; unit: a
# twentieth of the norm, for one that hardly moves leaps by its noise
LEAPS, OF_NORM, BEFORE = 10.0, 0.05, 5
# unit: a quarter of the run, and nine moves of ten before it; bound: ten values, of which five in a row that agree in six digits do not by chance
STOPPED, MOVING, STILL = 0.25, 0.9, 10
HALF_OVERFLOWS = 200, 260  # unit: the root of fp16's largest number is 255.9
NO_NORMS = "the norm of all weights was not logged, or it is not finite."
AT_REST = 1e-4  # unit: of the peak rate; behind a decay to nothing no weight moves
_MEANT = lazy_re(r"(?i)(^|[./_])(prun\w*|spars\w*|l0|lasso)([./_]|$)")


def weights_shrink(s: Symptoms) -> Sign:
    """The norm of all weights ends below two thirds of where it began, while the loss falls no further in the second half of the run and what was to be
    learnt is not: more than a tenth of the first loss is left."""
    total = _norms(s)
    if total is None:
        return cannot_tell(NO_NORMS)
    if weight_norms.frozen_on_purpose(s.run) or any(is_set(k) and _MEANT.search(k.key) for k in settings.every(s.run)):
        return does_not_arise("config freezes or prunes parts of the model.")
    (step, norm), (_, loss) = total, usable(s.run, "loss.train")
    first, last = float(norm[0]), last_level(norm)
    text = f"The norm of the weights goes from {first:.4g} to {last:.4g}"
    if last >= SHRUNK * first:
        return absent(f"{text}.")
    if why := lacking(s.run, 4 * FOR_A_QUARTER, "loss.train"):
        return cannot_tell(why)
    began, middle, end = first_level(loss), *_later(loss)
    told = f"{middle:.4g} in the second quarter of the run and {end:.4g} in the last"
    if end < (1 - ROOM) * middle or end < LEARNT * began:
        return absent(f"{text}, and the model learns: the loss is {began:.4g} at first, {told}.")
    logged = [*parts(s.run, "param.norm"), *parts(s.run, "param.norm_layer")][0]
    return seen(f"{text} while the loss falls no further: {told}.", where=logged.place(s.run, 0), first=int(step[0]), last=int(step[-1]))


def weights_end_small(s: Symptoms) -> Sign:
    """The norm of all weights ends below two thirds of where it began, whatever is learnt."""
    total = _norms(s)
    if total is None:
        return cannot_tell(NO_NORMS)
    (step, norm), last = total, last_level(total[1])
    text = f"The norm of the weights goes from {norm[0]:.4g} to {last:.4g}."
    return seen(text, first=int(step[0]), last=int(step[-1])) if last < SHRUNK * norm[0] else absent(text)


def _norms(s: Symptoms) -> tuple[Ints, Floats] | None:
    """Steps and norms of all weights, where they were logged often enough and are finite."""
    total = weight_norms.whole(s.run)
    if total is None or len(total[1]) < weight_norms.LEAST or not np.isfinite(total[1]).all() or total[1][0] <= 0:
        return None
    return total


def weights_leap(s: Symptoms) -> Sign:
    """A norm of weights goes within one logged interval ten times as far as ever before, while neither the gradient nor the rate grew by half as much,
    and no restart lies between: no update did that (Dixit et al., Silent data corruptions at scale, arXiv 2102.11245)."""
    named = [n for name in ("param.norm", "param.norm_layer") for n in parts(s.run, name)]
    worded = [
        n for n in weight_norms.of_parts(s.run) if n.tag not in {m.tag for m in named}
    ]  # of weights, by how they stay where they leapt
    logged = [n for n in (*named, *worded) if n.usable.sum() > BEFORE + 1]
    if not logged:
        return cannot_tell("the norm of the weights was not logged often enough.")
    if (beyond := _beyond_numbers(s, logged)) is not None:
        return beyond
    restarts = [f.first_step for f in s.of(restart.Facts) if f.first_step is not None]
    for n in logged:
        rows = np.flatnonzero(n.usable)
        step, x = n.step[rows], n.value[rows]
        moved = np.abs(np.diff(x))
        farthest = np.maximum.accumulate(moved)[:-1]
        leaps = [i for i in range(BEFORE, len(moved)) if moved[i] > max(LEAPS * farthest[i - 1], OF_NORM * abs(x[i]))]
        if not leaps or farthest[leaps[0] - 1] <= 0:
            continue
        if n in worded and not _stays(x[leaps[0] :], moved[leaps[0]]):
            continue
        before, after = int(step[leaps[0]]), int(step[leaps[0] + 1])
        if any(before <= r <= after for r in restarts) or _driven(s, before, after, moved[leaps[0]] / farthest[leaps[0] - 1]):
            continue
        text = f"{n.tag} goes from {x[leaps[0]]:.4g} to {x[leaps[0] + 1]:.4g} between steps {before} and {after}"
        told = f"{text}; never before did it go further than {farthest[leaps[0] - 1]:.2g} from one value to the next, and no gradient drove it."
        return seen(told, where=n.place(s.run, int(rows[leaps[0] + 1])), first=after, last=after)
    return absent(f"{logged[0].tag} does not leap, or the gradient, the rate or a restart leaps with it.", where=logged[0].place(s.run, 0))


def weights_stop_moving(s: Symptoms) -> Sign:
    """A norm of weights that had moved from value to value is the same to its last digit for the last quarter of the run, while the loss or another norm
    moves and the rate has not come to rest: something took these weights out of the training."""
    logged = {n.tag: n for n in (*weight_norms.norms(s.run), *weight_norms.of_parts(s.run)) if np.isfinite(n.value).all()}
    if not logged:
        return cannot_tell("no norm of weights was logged finely enough.")
    if weight_norms.frozen_on_purpose(s.run):
        return does_not_arise("config freezes parts of the model.")
    (at, loss), (when, rate) = usable(s.run, "loss.train"), usable(s.run, "lr")
    for n in logged.values():
        moves = np.flatnonzero(np.diff(n.value))
        still = len(n) - 1 - int(moves[-1]) if len(moves) else 0
        since = int(n.step[-still]) if still else 0
        if still < max(STILL, STOPPED * len(n)) or len(n) - still < BEFORE or len(moves) < MOVING * (len(n) - still):
            continue
        learns = len(np.unique(loss[at > since])) > 1 or any(len(np.unique(o.value[o.step > since])) > 1 for o in logged.values())
        if learns and (not len(rate) or (rate[when >= since] > AT_REST * rate.max()).all()):
            text = f"{n.tag} moves until step {since}, and is {n.value[-1]:.6g} in all {still} values from there on"
            return seen(f"{text}, while the training goes on.", where=n.place(s.run, len(n) - still), first=since, last=int(n.step[-1]))
    return absent(f"Of {len(logged)} norms of weights none stops moving.")


def _beyond_numbers(s: Symptoms, logged: list[Series]) -> Sign | None:
    """A norm that is no number from one value to the next, while the loss stays one and nothing drove it; where it was near 256, its squares may only have
    passed the largest number of fp16."""
    step, _ = usable(s.run, "loss.train")
    for n in logged:
        bad = np.flatnonzero(~np.isfinite(n.value))
        k = int(bad[0]) if len(bad) else 0
        if k <= BEFORE or HALF_OVERFLOWS[0] <= n.value[k - 1] <= HALF_OVERFLOWS[1]:
            continue
        before, after = int(n.step[k - 1]), int(n.step[k])
        if (step > after).any() and not _driven(s, before, after, LEAPS):
            text = (
                f"{n.tag} goes from {n.value[k - 1]:.4g} to {n.value[k]} between steps {before} and {after}, while the loss stays a number"
            )
            return seen(f"{text} and no gradient drove it.", where=n.place(s.run, k), first=after)
    return None


def _stays(x: Floats, leap: float) -> bool:
    """Whether values from the one before a leap on stay where it led, five of them and more: those of a batch come back."""
    return len(x) > BEFORE and bool((np.abs(x[1:] - x[1]) < leap / LEAPS).all())


def _driven(s: Symptoms, before: int, after: int, times: float) -> bool:
    """Whether the gradient or the rate of these steps is half as many times what it ever was as the weights moved further than before."""
    for name in ("grad.norm", "lr"):
        step, x = usable(s.run, name)
        earlier, there = x[step < before], x[(step >= before) & (step <= after)]
        if len(earlier) and len(there) and np.max(there) > max(np.max(earlier), 0) * times / 2:
            return True
    return False


def _later(loss: Floats) -> tuple[float, float]:
    """The levels of the loss in the second quarter of the run and in the last."""
    quarter = len(loss) // 4
    return median(loss[quarter : 2 * quarter]), median(loss[-quarter:])
