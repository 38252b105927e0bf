"""Spikes of the loss: how many, how they begin, how long they last and what they leave behind."""

from __future__ import annotations

import numpy as np

from forensics.detectors import loss_spike
from forensics.run.series import Floats
from forensics.run.usable_values import lacking
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from forensics.spikes.selected import AT_ONCE, LEAST, Spike, grave, heights, highest, none, of_note, peaks_at_once, with_turns

AGAIN, OFTEN = 3, 5  # spikes: three are no pair by chance; more than five are a habit of the run
DOUBT = 1 - loss_spike.CLEAR_ODDS  # probability of no spike, and height over the highest value before in units of ln: the bounds
FAR = loss_spike.HUGE / 2  # within which the detector itself calls no spike clear
END = 2**62  # bound: no log is as long
# measured: of 40 lasting spikes of 8 makers six fall to 0.09 or less, four of them of bad batches (the others: a wrong rate, a flipped bit); where data
# change, or the rate is too high, 0.14 and more is left at the next value
GONE = 0.1
HIGH = 0.5  # share of a stretch above half its height: an exponential decay from four times its end spends less there


def _times(n: int) -> str:
    return "does not spike" if n == 0 else "spikes once" if n == 1 else f"spikes {n} times"


def _many(s: Symptoms, least: int, most: int | None = None) -> Sign:
    """Whether there are so many grave spikes."""
    found = grave(s)
    if not found and (why := lacking(s.run, LEAST)):
        return cannot_tell(why)
    if least <= len(found) <= (most or len(found)):
        where = (
            f"at step {found[0].facts.peak}"
            if len(found) == 1
            else f"first at step {found[0].facts.peak}, last at step {found[-1].facts.peak}"
        )
        text = f"The loss {_times(len(found))}, {where}."
        return seen(text, found, first=found[0].facts.start, last=found[-1].facts.end or found[-1].facts.peak)
    return absent(f"The loss {_times(len(found))}.", found[:3])


def spiked_once(s: Symptoms) -> Sign:
    """There is one grave spike in the whole run."""
    return _many(s, 1, 1)


def spiked_again(s: Symptoms) -> Sign:
    """There are three or more grave spikes."""
    return _many(s, AGAIN)


def spiked_often(s: Symptoms) -> Sign:
    """There are more than five grave spikes."""
    return _many(s, OFTEN + 1)


def spike_back_at_once(s: Symptoms) -> Sign:
    """Every spike is over as fast as one batch (class fast; Bekman, training-loss-patterns), but for a tenth of its height that the batch may have left
    in the weights."""
    spikes = of_note(s)
    if not spikes:
        return none(s)
    slow = [f for f in spikes if f.facts.class_ not in ("fast", "not_a_spike") or f.facts.end is None]
    if stays := [f for f in slow if not _falls_at_once(s, f)]:
        return absent(f"{stays[0].title}.", stays[:3])
    if slow:
        facts = highest(slow).facts
        text = f"The loss jumps from {facts.level:.4g} to {facts.top:.4g} at step {facts.peak}, and no more than a tenth of that is left at the next value."
        return seen(text, with_turns(s, slow), first=facts.start, last=facts.peak, start=facts.start, peak=facts.peak)
    best = highest(spikes)
    facts = best.facts
    return seen(f"{best.title}.", spikes, first=facts.start, last=facts.end, start=facts.start, peak=facts.peak, end=facts.end)


def _falls_at_once(s: Symptoms, f: Spike) -> bool:
    """Whether a spike stands above half of its height for two logged values at most, and falls to a tenth of it from one to the next."""
    x = heights(s, f, END)
    high = x[int(np.argmax(x)) :] if len(x) else x
    fell = int(np.argmax(high <= HIGH * high[0])) if len(high) else 0
    return 0 < fell <= AT_ONCE and float(high[fell]) <= GONE * float(high[0]) and peaks_at_once(s, f)


def spike_stays(s: Symptoms) -> Sign:
    """A spike does not come back though the log goes on long enough to show it (class non_recovering)."""
    spikes = of_note(s)
    if not spikes:
        return none(s)
    stays = [f for f in spikes if f.facts.class_ == "non_recovering"]
    if known := [f for f in stays if not f.facts.censored]:
        facts = known[0].facts
        text, found = f"{known[0].title}.", with_turns(s, known)
        return seen(text, found, first=facts.start, last=known[0].last_step, start=facts.start, peak=facts.peak)
    if stays:
        return cannot_tell(f"too few values follow the spike at step {stays[0].facts.peak}: whether it stays is open.")
    return absent(f"The loss comes back after {'the spike' if len(spikes) == 1 else f'each of {len(spikes)} spikes'}.", spikes[:3])


def spike_recovers_slowly(s: Symptoms) -> Sign:
    """A spike comes back, but later than one batch explains (class slow)."""
    spikes = of_note(s)
    if not spikes:
        return none(s)
    if slow := [f for f in spikes if f.facts.class_ == "slow"]:
        f = highest(slow)
        return seen(f"{f.title}.", with_turns(s, slow), first=f.facts.start, last=f.facts.end, start=f.facts.start, peak=f.facts.peak)
    return absent(f"{highest(spikes).title}.", spikes[:3])


def spike_peaks_at_once(s: Symptoms) -> Sign:
    """The highest spike reaches its peak within two logged values of its first high one."""
    spikes = of_note(s)
    if not spikes:
        return none(s)
    best = highest(spikes)
    facts = best.facts
    if peaks_at_once(s, best):
        text = f"The loss leaves its level at step {facts.start} and is at its peak by step {facts.peak}."
        return seen(text, [best], first=facts.start, last=facts.peak)
    return absent(
        f"The loss climbs for {facts.peak - facts.start} steps, from step {facts.start} on, before it peaks at step {facts.peak}.", [best]
    )


def spike_within_scatter(s: Symptoms) -> Sign:
    """The highest spike may be scatter: values nearly as high come before it, and its shape is no clear one."""
    spikes = of_note(s)
    if not spikes:
        return none(s)
    best = highest(spikes)
    doubt, over = best.facts.class_probability["not_a_spike"], best.facts.over_highest
    if over is None:
        return cannot_tell(f"too few values come before the spike at step {best.facts.peak} to compare it with.")
    text = f"The spike at step {best.facts.peak} reaches {np.exp(min(over, 50.0)):.3g} times the highest of the {loss_spike.BEFORE} values before it"
    text += f"; by height, crowd and shape it is scatter with a probability of {doubt:.0%}."
    return seen(text, [best], first=best.facts.start, last=best.facts.peak) if doubt > DOUBT and over < FAR else absent(text, [best])


def stretch_stays_high(s: Symptoms) -> Sign:
    """The loss stands on a high level for a stretch that ends, instead of decaying from a peak (Bekman: a bad data pocket)."""
    best = _stretch(s)
    if isinstance(best, Sign):
        return best
    x, end = _heights(s, best)
    share = float((x > 0.5 * _top(x)).mean()) if len(x) else 0.0
    if share >= HIGH or _ends_high(x):
        text = f"The loss stays high for {len(x)} values in a row, from step {best.facts.start} to step {end}."
        return seen(text, [best], first=best.facts.start, last=end)
    return absent(
        f"The loss decays from its peak at step {best.facts.peak}: {share:.0%} of its {len(x)} high values stand above half the height.",
        [best],
    )


def _stretch(s: Symptoms) -> Spike | Sign:
    """The clearest stretch of high values that ends, or what to say where there is none."""
    spikes = s.of(loss_spike.Facts)
    if not spikes:
        return none(s)
    stretches = [f for f in spikes if f.facts.values >= loss_spike.STRETCH and (f.facts.end or f.facts.falls_at) is not None]
    if stretches:
        return max(stretches, key=lambda f: f.facts.noise_sigmas * f.facts.values**0.5)
    back = [f.facts.values for f in spikes if f.facts.end is not None]
    return absent(f"The longest spike that ends lasts for {max(back)} logged value{'s' if max(back) != 1 else ''}.", spikes[:2]) if back else does_not_arise("the loss is not back after its spike, so there is no stretch that ends.")  # fmt: skip


def _heights(s: Symptoms, f: Spike) -> tuple[Floats, int]:
    """(values of a stretch above the level before it, step at which it is over)."""
    end = f.facts.falls_at or (f.facts.end if f.facts.end is not None else f.facts.peak)  # what is left of it afterwards is recovery
    return heights(s, f, end), end


def _top(x: Floats) -> float:
    return float(np.percentile(x, 80)) if len(x) else 0.0


def _ends_high(x: Floats) -> bool:
    return len(x) > 0 and _top(x) > 0 and bool(np.median(x[-3:]) > 0.5 * _top(x))
