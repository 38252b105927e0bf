"""Spikes of the loss: how high they reach, and what stands beside them in the log."""

from __future__ import annotations

from forensics.detectors import loss_spike
from forensics.run.usable_values import begins_late, first_level, metric, usable
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from forensics.spikes.selected import grave, highest, none, of_note, peaks_at_once

SUBJECT = "spike_shape"  # the other half of it

TRAINED = 0.5  # of the first loss: the run had learnt half of it away


def spike_above_first_loss(s: Symptoms) -> Sign:
    """Out of a trained state the loss jumps at once above its first value, and is not back at once: worse than guessing."""
    spikes = grave(s)
    if not spikes:
        return none(s)
    if why := begins_late(s.run):
        return cannot_tell(why)
    _, x = usable(s.run)
    first = first_level(x)
    if not first > 0:
        return does_not_arise(f"the loss begins at {first:.3g}, with which no jump can be compared.")
    least = max(first, float(x[:3].max()))
    above = [f for f in spikes if f.facts.top > least and f.facts.level < TRAINED * first]
    hit = [f for f in above if peaks_at_once(s, f) and f.facts.class_ in ("non_recovering", "slow")]
    if hit:
        facts = hit[0].facts
        text = f"At step {facts.peak} the loss jumps from {facts.level:.3g} to {facts.top:.3g}; it began at {first:.3g}."
        return seen(text, hit[:1], first=facts.start, last=facts.peak, peak=facts.peak)
    if above:
        how = "climbs there over several values" if above[0].facts.class_ in ("non_recovering", "slow") else "is back at once"
        return absent(
            f"The loss rises to {above[0].facts.top:.3g} at step {above[0].facts.peak}, above its first {first:.3g}, but {how}.", above[:1]
        )
    top = highest(spikes)
    return absent(f"The highest spike reaches from {top.facts.level:.3g} to {top.facts.top:.3g}; the loss began at {first:.3g}.", [top])


def level_left_at_once(s: Symptoms) -> Sign:
    """The loss stands on one high level and leaves it from one value to the next."""
    spikes = of_note(s)
    if not spikes:
        return none(s)
    if left := [f for f in spikes if f.facts.falls_at is not None]:
        facts = left[0].facts
        text = f"From step {facts.start} on the loss stands at one high level, and leaves it at once at step {facts.falls_at}."
        return seen(text, left[:1], first=facts.start, last=facts.falls_at)
    long = [f for f in spikes if f.facts.values >= loss_spike.STRETCH + 3]  # what the measure of such a stretch needs
    if not long:
        return does_not_arise(f"no spike is longer than {max(f.facts.values for f in spikes)} logged values, too few for a level.")
    return absent(f"The loss leaves no high level at once: {long[0].title[0].lower()}{long[0].title[1:]}.", long[:2])


def spike_at_last_steps(s: Symptoms) -> Sign:
    """The log ends so soon after a spike that nobody can say what became of it."""
    spikes = of_note(s)
    if not spikes:
        return none(s)
    logged = metric(s.run)
    if logged is None:
        return none(s)
    end, attempt = int(logged.step.max()), int(logged.attempt.max())
    cut = [f for f in spikes if f.facts.censored and f.facts.end is None and f.facts.attempt == attempt]
    if cut:
        facts = cut[-1].facts
        text = f"The log ends at step {end}, {max(end - facts.peak, 0)} steps after the spike at step {facts.peak}."
        return seen(text, cut[-1:], first=facts.start, last=end)
    return absent(
        f"The log goes on for {max(end - spikes[-1].facts.peak, 0)} steps after the last spike, at step {spikes[-1].facts.peak}.",
        spikes[-1:],
    )
