"""The gradient norm, whole and by layer: how large it is, whether it jumps, grows, is clipped, or does not flow."""

from __future__ import annotations

from typing import Any

import numpy as np

from forensics.case import Finding
from forensics.detectors import divergence, grad_spike, layer_gradients, loss_spike, zero_loss
from forensics.run import settings
from forensics.run.robust import last_digit, median
from forensics.run.series import Floats, parts, series
from forensics.run.trouble import trouble
from forensics.run.usable_values import begins_late, first_level, lacking, last_level, levels, nan_from, usable
from forensics.signs.sign import SEEN, Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

EFFECTS = {"gradient_carries_over": "grad.norm", "gradient_zero_throughout": "grad.norm"}  # symptoms of their own, without a detector

LARGE = 4.0  # times the level of the norm
LEADS, FOLLOWS = 10, 3  # steps by which the norm may jump before the trouble, and after its peak
TINY = 1e-3  # norm; over 1e8 parameters 1e-7 each, near Adam's epsilon of 1e-8, which then sets the step (arXiv 2304.09871)
BEFORE = 100  # values before the trouble that tell how large the norm usually was
FIRST, LARGE_AT_FIRST, LEAST = 5, 10.0, 40  # values; times the second half; values in all
CHANGES = 25  # statistical: a correlation of 24 changes is known to 0.2, the distance between a random walk and what goes on, and half that to noise
# statistical: noise about a level has -0.5, a random walk 0; measured: of 491 runs those without zero_grad reach 0.27 to 0.94, 0.6 beyond their loss
# or more, and no other both
GOES_ON, APART = 0.2, 0.5
TAIL = 0.05  # not critical: single jumps, of spikes, decide nothing
GROWN, FIFTHS = 10.0, 5  # an order of magnitude; that five medians rise one after the other is chance once in 120 runs
COARSE = 100.0  # unit: of the last digit: to one percent, less than a loss scatters by
MOVES = 0.1  # unit: share by which an evaluation moves that learns
LEARNT = 0.8  # unit: of the first level of a training loss, which batches move, too
NEARLY_ALL, AT_CLIP = 0.9, 1e-3  # share of the values; how near a norm is to the clip value that cut it (printed to four digits)


def gradient_jumps_with_trouble(s: Symptoms) -> Sign:
    """The gradient norm jumps to four times its level or more shortly before the trouble, or with it."""
    found, norms = trouble(s.findings), s.of(grad_spike.Facts)
    if not found:
        return does_not_arise("no trouble of the loss has a step, so no jump of the gradient norm can go with it.")
    if not norms and (why := lacking(s.run, FIRST, "grad.norm")):
        return cannot_tell(why)
    near = [f for f in norms if any(_leads(f, t) for t in found)]
    if near:
        top = max(near, key=lambda f: f.facts.ratio)
        text = f"The gradient norm jumps to {top.facts.top:.3g} at step {top.facts.peak}, {top.facts.ratio:.3g} times its level."
        return seen(text, [top], first=top.facts.start, last=top.facts.peak) if top.facts.ratio >= LARGE else absent(text, [top])
    told = [t for t in (_beside(s, f) for f in found) if t is not None]
    if not told:
        return cannot_tell(f"too few gradient norms were logged around the trouble at step {found[0].first_step}.")
    return max(told, key=lambda t: t.state == SEEN)


def _leads(grad: Finding[grad_spike.Facts], trouble: Finding) -> bool:
    """Whether the norm jumps shortly before the trouble, or with it."""
    begins = trouble.first_step or 0
    peak = trouble.facts.peak if isinstance(trouble.facts, loss_spike.Facts) else begins
    last = trouble.last_step or begins if isinstance(trouble.facts, divergence.Facts) else peak + FOLLOWS
    return begins - LEADS <= grad.facts.peak <= last


def _beside(s: Symptoms, trouble: Finding) -> Sign | None:
    """The norm at the trouble against the values before it: what begins with an attempt is no excursion of its series."""
    step, x = usable(s.run, "grad.norm")
    at = trouble.first_step or 0
    before, there = x[step < at - LEADS][-BEFORE:], np.flatnonzero((step >= at - LEADS) & (step <= at + FOLLOWS))
    if len(before) < FIRST or not len(there):
        return None
    row, usual, highest = there[int(np.argmax(x[there]))], median(before), float(before.max())
    text = f"The gradient norm is {x[row]:.3g} at step {step[row]}, where the loss has its trouble at step {at}; before it was usually {usual:.3g}."
    if usual > 0 and x[row] >= LARGE * usual and x[row] > highest:
        return seen(text, [trouble], first=int(step[row]), last=int(step[row]))
    return absent(text)


def gradient_was_tiny(s: Symptoms) -> Sign:
    """The gradient norm had become tiny before the trouble (Adam instability, arXiv 2304.09871); absent: it was of ordinary size."""
    begins = [f.first_step or 0 for f in trouble(s.findings)]
    if not begins:
        return does_not_arise("no trouble of the loss has a step, so there is nothing before it to judge.")
    if why := lacking(s.run, LEAST, "grad.norm"):
        return cannot_tell(why)
    step, x = usable(s.run, "grad.norm")
    usual = [median(b) for at in begins if len(b := x[step < at][-BEFORE:]) >= FIRST]
    if not usual:
        return cannot_tell(f"too few gradient norms come before the trouble at step {begins[0]}.")
    level = median(usual)
    text = f"The gradient norm was usually {level:.2g} before the trouble (first at step {begins[0]})."
    return seen(text, first=int(step[0]), last=begins[0], tiny_gradient=f"{level:.2g}") if 0 < level < TINY else absent(text)


def gradient_exactly_zero(s: Symptoms) -> Sign:
    """The gradient norm is exactly zero, for most of the run or from where the loss is zero."""
    norm = series(s.run, "grad.norm")
    if norm is not None and np.isnan(norm.value).all():
        return absent(f"All {len(norm)} logged gradient norms are NaN: none is zero.")
    if why := lacking(s.run, 1, "grad.norm"):
        return cannot_tell(why)
    step, x = usable(s.run, "grad.norm")
    zeros = s.of(zero_loss.Facts)
    begin = zeros[0].facts.step if zeros else int(step[0])
    after = x[step >= begin]
    if not len(after):
        return cannot_tell(f"no finite gradient norm was logged from step {begin} on.")
    n = int((after == 0).sum())
    if n > len(after) / 2:
        text = f"The gradient norm is exactly zero in {n} of {len(after)} values from step {begin} on."
        return seen(text, zeros, first=begin, last=int(step[-1]))
    return absent(f"There is a gradient: its norm is {np.median(after):.3g} in the median, and zero in {n} of {len(after)} values.")


def gradient_zero_throughout(s: Symptoms) -> Sign:
    """Every logged gradient norm is exactly zero, and nothing is learnt: then no rate, no label and no clipping can have done anything."""
    if why := lacking(s.run, FIRST, "grad.norm") or begins_late(s.run):
        return cannot_tell(why)
    (step, x), loss = usable(s.run, "grad.norm"), usable(s.run, "loss.train")[1]
    if n := int((x != 0).sum()):
        return absent(f"{n} of {len(x)} logged gradient norms are not zero.")
    sets = [v for name in ("loss.eval", "rl.reward") for p in parts(s.run, name) if len(v := p.value[p.usable])]
    if any(np.ptp(v) > MOVES * abs(v[0]) for v in sets) or (not sets and len(loss) and last_level(loss) < LEARNT * first_level(loss)):
        return does_not_arise("the gradient norm is zero and something is learnt: it was taken where the gradients had been cleared.")
    still = f", and none of {len(sets)} evaluation losses and rewards moves" if sets else ""
    return seen(f"All {len(x)} logged gradient norms are exactly zero{still}.", first=int(step[0]), last=int(step[-1]))


def gradients_flow(s: Symptoms) -> Sign:
    """The usual gradient norm is finite and of ordinary size; absent: there is hardly any gradient."""
    if why := lacking(s.run, FIRST, "grad.norm"):
        return cannot_tell(why)
    step, x = usable(s.run, "grad.norm")
    if (usual := median(x)) > TINY:
        return seen(f"Gradients flow: their norm is {usual:.2g} in the median.", first=int(step[0]), last=int(step[-1]))
    return absent(f"There is hardly any gradient: its norm is {usual:.2g} in the median.")


def first_gradients_large(s: Symptoms) -> Sign:
    """The first gradient norms are more than ten times those of the second half of the run."""
    if why := lacking(s.run, LEAST, "grad.norm") or begins_late(s.run):
        return cannot_tell(why)
    step, x = usable(s.run, "grad.norm")
    first, usual = median(x[:FIRST]), median(x[len(x) // 2 :])
    text = f"The first gradient norms are {first:.3g}, those of the second half {usual:.3g} in the median."
    return seen(text, first=int(step[0]), last=int(step[FIRST - 1])) if first > LARGE_AT_FIRST * usual else absent(text)


def _layers(s: Symptoms, found: list[Finding[layer_gradients.Facts]]) -> Sign:
    """What the norms by layer say: this finding, or how they compare."""
    if found:
        return seen(f"{found[0].title}.", found, first=found[0].first_step, last=found[0].last_step)
    usual = {g.tag: median(x) for g in parts(s.run, "grad.norm_layer") if len(x := g.value[np.isfinite(g.value)])}
    if len(usual) < 2:
        return cannot_tell("the gradient norm was not logged by layer.")
    low, high = min(usual, key=lambda t: usual[t]), max(usual, key=lambda t: usual[t])
    return absent(
        f"Of {len(usual)} logged layers {low} gets the smallest gradient ({usual[low]:.2g}), {high} the largest ({usual[high]:.2g})."
    )


def layers_without_gradient(s: Symptoms) -> Sign:
    """Some of the logged layers get no gradient at all, or never move, while others do."""
    return _layers(s, [f for f in s.of(layer_gradients.Facts) if f.facts.frozen and not f.facts.every])


def no_layer_has_gradient(s: Symptoms) -> Sign:
    """No logged layer gets a gradient, and yet the whole norm is not zero: only what was not logged, as biases, learns."""
    return _layers(s, [f for f in s.of(layer_gradients.Facts) if f.facts.frozen and f.facts.every])


def layers_starved(s: Symptoms) -> Sign:
    """Layers get less than a thousandth of the largest gradient."""
    return _layers(s, [f for f in s.of(layer_gradients.Facts) if f.facts.starved])


def units_dead(s: Symptoms) -> Sign:
    """A logged share of dead or saturated units stands above 90 %."""
    if found := [f for f in s.of(layer_gradients.Facts) if f.facts.dead is not None]:
        return seen(f"{found[0].title}.", found, first=found[0].first_step, last=found[0].last_step)
    shares = [(median(x), d.tag) for d in layer_gradients.shares_dead(s.run) if len(x := d.value[np.isfinite(d.value)])]
    if not shares:
        return cannot_tell("no share of dead or saturated units was logged.")
    share, tag = max(shares)
    return absent(f"The share of dead or saturated units is {share:.3g} in the median ({tag}).")


def gradient_grows_steadily(s: Symptoms) -> Sign:
    """The gradient norm rises from fifth to fifth of the run, tenfold in all, and the loss does not rise before it."""
    if why := lacking(s.run, LEAST, "grad.norm"):
        return cannot_tell(why)
    step, x = usable(s.run, "grad.norm")
    fifths = levels(x, FIFTHS)
    told = ", ".join(f"{v:.3g}" for v in fifths)
    if not ((np.diff(fifths) > 0).all() and fifths[-1] >= GROWN * fifths[0]):
        return absent(f"The gradient norm does not grow steadily: {told} in the fifths of the run.")
    begin = int(step[len(x) // FIFTHS])  # of the second fifth: until then nothing can have grown
    loss = [f for f in trouble(s.findings) if (f.first_step or 0) < begin]
    if loss:
        text = f"The gradient norm grows ({told} in the fifths of the run), but the loss had trouble before, at step {loss[0].first_step}."
        return absent(text, loss[:1])
    return seen(f"The gradient norm grows steadily: {told} in the fifths of the run.", first=begin, last=int(step[-1]))


def gradient_carries_over(s: Symptoms) -> Sign:
    """The gradient norm goes on from value to value as it went, while the loss turns back from batch to batch: it holds the sum of many batches, not one."""
    if why := lacking(s.run, CHANGES, "grad.norm") or lacking(s.run, CHANGES, "loss.train"):
        return cannot_tell(why)
    (step, norm), (at, loss) = usable(s.run, "grad.norm"), usable(s.run, "loss.train")
    sick = np.inf if (nan := nan_from(s.run)) is None else nan  # what follows is no gradient, nor is 0
    step, norm, loss = step[(step < sick) & (norm > 0)], norm[(step < sick) & (norm > 0)], loss[at < sick]
    if min(len(norm), len(loss)) < CHANGES:
        return cannot_tell(f"the loss was no number before {CHANGES} gradients and losses were logged.")
    if float((norm >= (1 - AT_CLIP) * norm.max()).mean()) > 1 - NEARLY_ALL:
        return cannot_tell("the gradient norm was logged after clipping, which hides how it scatters.")
    if median(norm) < COARSE * (digit := last_digit(norm)):
        return cannot_tell(f"the gradient norm was printed in steps of {digit:g}, which hide how it scatters.")
    goes_on, loss_goes_on = _goes_on(np.log(np.maximum(norm, 1e-12))), _goes_on(np.log1p(np.abs(loss)))
    text = f"A change of the gradient norm and the next one correlate at {goes_on:+.2f}, those of the loss at {loss_goes_on:+.2f}"
    if goes_on < GOES_ON:
        return absent(f"{text}: it is the gradient of one batch.")
    if goes_on - loss_goes_on < APART:
        return does_not_arise(f"{text}: both are smooth, as means are, or where each step sees all data.")
    return seen(f"{text}: gradients of earlier batches are still in it.", first=int(step[0]), last=int(step[-1]))


def _goes_on(x: Floats) -> float:
    """The correlation of a change with the next one, without the outermost of them: -0.5 of noise about a level, 0 of a random walk."""
    d = np.clip(np.diff(x), *np.quantile(np.diff(x), [TAIL, 1 - TAIL]))
    d -= d.mean()
    return float((d[1:] * d[:-1]).sum() / max((d * d).sum(), 1e-300))


def gradient_clipped_always(s: Symptoms) -> Sign:
    """Nearly every gradient is clipped: the logged norm sits at the clip value, or lies above it in more than 90 % of the values."""
    if why := lacking(s.run, LEAST, "grad.norm"):
        return cannot_tell(why)
    step, x = usable(s.run, "grad.norm")
    place: dict[str, Any] = {"first": int(step[0]), "last": int(step[-1])}
    top = float(x.max())
    capped = float((x >= (1 - AT_CLIP) * top).mean()) if top > 0 else 0.0
    if capped >= NEARLY_ALL and np.ptp(x) > 0:
        return seen(f"The logged gradient norm is {top:.3g} in {capped:.0%} of its values and never above: it is cut off there.", **place)
    setting = settings.setting(s.run, "clip")
    clip = settings.as_number(setting.value) if setting else None
    if setting is None:
        return cannot_tell("config does not say whether gradients were clipped.")
    if clip is None or clip <= 0:
        return absent(f"Config sets no value at which gradients are clipped ({setting.key}: {setting.value}).", where=setting.where)
    share = float((x > clip).mean())
    text = f"The gradient norm lies above the clip value of {clip:g} in {share:.0%} of its values."
    return seen(text, where=setting.where, **place) if share > NEARLY_ALL else absent(text, where=setting.where)
