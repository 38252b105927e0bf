"""Values that are NaN or infinite: whether they stay, what came before them, and what the log says of them."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from forensics.case import Finding
from forensics.detectors import nonfinite
from forensics.run import overflow_frames, settings
from forensics.run.how_it_ended import ending
from forensics.run.robust import median
from forensics.run.series import Floats, Ints, series
from forensics.run.usable_values import lacking, metric, usable
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from forensics.spikes.selected import not_finite
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

FEW = 3  # NaN values that pass: single batches; more are met again and again
FALLEN = 0.1  # of the usual value of the first half: an order of magnitude towards zero
LEAST = 20  # statistical: values for a median before and one after, of ten each
SILENT = lazy_re(r"(?i)exit code|\W*failed\b|traceback without")  # that it failed, not of what
GUARD = lazy_re(r"\b(?:nan|inf|non-?finite|not finite)\b", re.I)
BAD_DATA = lazy_re(  # what scikit-learn, XGBoost, LightGBM and pandas say of arrays that they refuse
    r"\b(?:inputs?|labels?|targets?|features?|data(?:set|frame)?|columns?|arrays?|x|y)\b[^.:]{0,40}?\b(?:nans?|null|inf(?:init[ey])?|missing values?)\b",
    re.I,
)


def _losses(s: Symptoms) -> list[Finding[nonfinite.Facts]]:
    """Of the training loss (of a policy's, or of its values'), else of the evaluation's; what only a line of the log says is none."""
    found = [f for f in s.of(nonfinite.Facts) if f.facts.metric.startswith(("loss", "ppl", "rl.loss"))]
    return [f for f in found if not f.facts.metric.endswith(".eval")] or found


def _norms(s: Symptoms) -> list[Finding[nonfinite.Facts]]:
    return [f for f in s.of(nonfinite.Facts) if f.facts.metric == "grad.norm"]


def _values(s: Symptoms) -> list[Finding[nonfinite.Facts]]:
    """Of the loss; of the gradient norm where no loss is known, or none was logged any more when the norm broke."""
    norms = _norms(s)
    if (losses := _losses(s)) or not norms:
        return losses
    step, _ = usable(s.run)
    return norms if not len(step) or step.max() < (norms[0].facts.last or 0) else []


def first_of(s: Symptoms) -> Finding[nonfinite.Facts] | None:
    """The first value that is not finite, of loss or gradient norm."""
    return min([*_losses(s), *_norms(s)], key=lambda f: f.facts.first or 0, default=None)


def _unseen(s: Symptoms) -> str:
    """Why the logged loss could not show a NaN; empty where it could."""
    if metric(s.run) is None:
        return lacking(s.run, 1)
    on = all(f.value is not False for f in settings.named(s.run, "logging_nan_inf_filter"))
    if s.run.framework == "hf-trainer" and on:
        return "the log is that of the Hugging Face Trainer, whose filter hides a NaN of the loss."
    return "no value is NaN, but a line of the log speaks of one." if any(f.facts.said for f in s.of(nonfinite.Facts)) else ""


def _all_finite(s: Symptoms) -> Sign:
    why = _unseen(s)
    return cannot_tell(why) if why else absent(f"All {len(usable(s.run)[0])} logged values of the loss are finite.")


def nan_stays(s: Symptoms) -> Sign:
    """The loss (the gradient norm where no loss is known) becomes NaN or infinite and no finite value comes after it."""
    found = _values(s)
    if stays := [f for f in found if f.facts.recovered is False]:
        first, last = stays[0].facts.first, stays[0].facts.last
        return seen(f"{stays[0].title}.", [*stays, *not_finite(s)], do=overflow_frames.do(s.run), first=first, last=last)
    return absent(f"{found[0].title}.", found) if found else _all_finite(s)


def nan_passes(s: Symptoms) -> Sign:
    """One to three values of the loss are NaN or infinite, and it is finite again without more of them."""
    return _back(s, lambda n: n <= FEW)


def nan_comes_and_goes(s: Symptoms) -> Sign:
    """More than three values of the loss are NaN or infinite, with finite ones between."""
    return _back(s, lambda n: n > FEW)


def _back(s: Symptoms, fits: Callable[[int], bool]) -> Sign:
    found = _values(s)
    if back := [f for f in found if f.facts.recovered and fits(f.facts.count)]:
        return seen(f"{back[0].title}.", [*back, *not_finite(s)], first=back[0].facts.first, last=back[0].facts.last)
    return absent(f"{found[0].title}.", found) if found else _all_finite(s)


def nan_from_first_value(s: Symptoms) -> Sign:
    """The very first logged value of the loss is NaN or infinite."""
    found = _values(s)
    if not found:
        why = _unseen(s)
        return cannot_tell(why) if why else does_not_arise("no value of the loss is NaN, so none is the first.")
    facts = found[0].facts
    if facts.at_start:
        text = f"The very first logged value, of step {facts.first}, is not finite."
        return seen(text, [*found, *not_finite(s)], first=facts.first, last=facts.last)
    return absent(f"Finite values come before the first that is not, at step {facts.first}.", found)


def nothing() -> Sign:
    return does_not_arise("no value of loss or gradient is NaN, so nothing leads up to one.")


def gradient_nan_before_loss(s: Symptoms) -> Sign:
    """The gradient norm becomes NaN while the loss is still finite, and the loss follows."""
    losses, norms = _losses(s), _norms(s)
    if why := routine(s.run):
        return does_not_arise(why)
    if not norms and (why := lacking(s.run, 1, "grad.norm")):
        return cannot_tell(why)
    if not losses:
        why = _unseen(s)
        return cannot_tell(why) if why else does_not_arise("no value of the loss is NaN, so the gradient does not come before it.")
    at = losses[0].facts.first or 0
    if not norms:
        return absent(f"The gradient norm is finite throughout, while the loss is not from step {at} on.", losses)
    first = norms[0].facts.first or 0
    if first < at:
        text = f"The gradient norm is not finite at step {first}, while the loss is finite until step {at}."
        return seen(text, [norms[0], losses[0]], first=first, last=at)
    return absent(f"The gradient norm is first not finite at step {first}, the loss at step {at}.", [norms[0], losses[0]])


def gradient_infinite_loss_finite(s: Symptoms) -> Sign:
    """Out of calm values the gradient norm is infinite, not NaN, while every logged loss is finite: one number overflowed."""
    norms, losses = _norms(s), _losses(s)
    if why := routine(s.run):
        return does_not_arise(why)
    if not norms and (why := lacking(s.run, 1, "grad.norm")):
        return cannot_tell(why)
    if not norms:
        return absent(f"All {len(usable(s.run, 'grad.norm')[0])} logged gradient norms are finite.")
    facts = norms[0].facts
    if losses:
        return absent(f"The loss is not finite either, at step {losses[0].facts.first}.", [norms[0], losses[0]])
    if not facts.infinite:
        return absent(f"The gradient norm is NaN at step {facts.first}, not infinite.", norms)
    if facts.grad_ratio is None or facts.at_start:
        return cannot_tell(f"too few gradient norms come before the infinite one of step {facts.first}.")
    told = f"it was {facts.grad_ratio:.2g} times its usual value at most before"
    if facts.grad_ratio <= nonfinite.CALM:
        text = f"The gradient norm is infinite at step {facts.first} while the loss is finite; {told}."
        return seen(text, norms, first=facts.first, last=facts.last)
    return absent(f"The gradient norm had grown before it was infinite at step {facts.first}: {told}.", norms)


def routine(run: Run) -> str:
    """Where a loss scale searches its height by overflows, norms that are not finite are routine."""
    scaled = series(run, "loss_scale") is not None or settings.precision(run) == "fp16"
    return "the run is in half precision, where a loss scale makes infinite norms as a matter of routine." if scaled else ""


def gradient_nan_loss_finite(s: Symptoms) -> Sign:
    """At the same steps the gradient norm is NaN and the logged loss is finite."""
    norm, loss = series(s.run, "grad.norm"), metric(s.run)
    if norm is None or loss is None:
        return cannot_tell(f"the {'gradient norm' if norm is None else 'loss'} was not logged.")
    if why := routine(s.run):
        return does_not_arise(why)
    sick: Ints = norm.step[np.isnan(norm.value)]
    if not len(sick):
        return absent(f"None of the {len(norm)} logged gradient norms is NaN.")
    there = np.isin(loss.step, sick)
    both = loss.step[there & np.isfinite(loss.value)]
    if not there.any():
        return cannot_tell(f"no loss was logged at the steps at which the gradient norm is NaN (first at step {sick[0]}).")
    if len(both):
        text = f"At step {both[0]} the gradient norm is NaN and the loss is finite; so in {len(both)} row{'s' if len(both) > 1 else ''} of the log."
        return seen(text, _norms(s)[:1], first=int(both[0]), last=int(both[-1]))
    return absent(f"Where the gradient norm is NaN (first at step {sick[0]}), the loss is not finite either.", _norms(s)[:1])


def falls_to_zero_before_nan(s: Symptoms) -> Sign:
    """Loss or gradient norm falls by more than ten times on its way to the first NaN: something runs towards an edge."""
    f = first_of(s)
    if f is None or f.facts.first is None:
        return nothing()
    told = []
    for name, word in (("grad.norm", "gradient norm"), ("loss.train", "loss")):
        step, value = usable(s.run, name)
        x: Floats = value[(step < f.facts.first) & (value > 0)]
        if len(x) < LEAST:
            continue
        usual, last = median(x[: len(x) // 2]), median(x[-5:])
        told.append(f"the {word} goes from {usual:.3g} to {last:.3g}")
        if last < FALLEN * usual:
            text = f"The {word} had fallen from {usual:.3g} to {last:.2g} before step {f.facts.first}."
            return seen(text, [f], first=int(step[0]), last=f.facts.first)
    if not told:
        return cannot_tell(f"too few values of loss and gradient norm come before step {f.facts.first}.")
    return absent(f"Before step {f.facts.first} {' and '.join(told)}.", [f])


def nan_guard_raised(s: Symptoms) -> Sign:
    """The exception that ended the run was raised because a value was not finite: a guard."""
    return _exception_speaks(s, GUARD, "a value that is not finite")


def data_check_raised(s: Symptoms) -> Sign:
    """The exception that ended the run says that inputs, labels or columns hold NaN or infinity: a library checked the data."""
    return _exception_speaks(s, BAD_DATA, "data that are not finite")


def _exception_speaks(s: Symptoms, pattern: re.Pattern[str], of: str) -> Sign:
    e = ending(s.run)
    if e.kind != "exception":
        return does_not_arise("no exception ended the run.")
    if SILENT.match(e.says):
        return cannot_tell(f"the exception itself was not logged, only that the run failed ({e.says[:60]}).")
    if pattern.search(e.says):
        return seen(f'The exception that ended the run speaks of {of}: "{e.says[:120]}".', where=e.where, first=e.step, last=e.step)
    return absent(f'The exception that ended the run does not speak of {of}: "{e.says[:120]}".', where=e.where)
