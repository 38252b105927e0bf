"""The course of the loss: whether it turns round, jumps to another level, swings, stands still or goes on falling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from forensics.case import Finding
from forensics.detectors import divergence, level_shift, loss_spike, oscillation
from forensics.run import rate_shape, settings
from forensics.run.evaluations import improves_after
from forensics.run.levels import LEAST_FALL
from forensics.run.robust import error_of_median, median, robust_sigma
from forensics.run.series import Floats
from forensics.run.trouble import trouble
from forensics.run.usable_values import BEGINNING, begins_late, first_level, lacking, last_level, metric, scatter, usable
from forensics.signs.kl_weight import kl_weight_lifts_loss
from forensics.signs.sign import SEEN, Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from forensics.spikes.selected import LEAST, with_turns
from parsers.lazy_regex import lazy_re

EFFECTS = {"loss_ends_above_start": "loss.train"}  # symptoms of their own, for which there is no detector

LONG_MOMENTUM = 0.95  # unit: steps of twenty times the rate; 0.9 is the default of papers and of Adam (arXiv 1412.6980)
AFTER = 20  # values that have to follow a jump: two medians of ten
CAME_BACK = 0.4  # of a rise is lost again: the rule for lasting rises (forensics.spikes.trend) wants 60 % of a jump kept
HOLDS = 1.15  # times the height of the jump: a later drift of less than a sixth of it is small beside the jump itself
ERRORS = 3.0  # standard errors between two medians: chance alone does it once in 700 comparisons
_LIKELIHOOD = lazy_re(r"(?i)nll|likelihood|elbo|log_?p|bpd|bits")  # of a density: it may be negative, and falls all the same
SCATTERED = 15  # bound: values; the running median of nine that scatter is measured about has whole windows in half of them
FULL, FALLEN = 0.2, 0.75  # what "for long" and "well" mean here: share of the run at the full rate; share of the first loss that is left


def loss_diverged(s: Symptoms) -> Sign:
    """The loss turns round and ends well above the best level it had reached (Bekman, training-loss-patterns: divergence)."""
    if found := _turns(s):
        f = found[0]
        rises = [r for r in s.of(loss_spike.Facts) if r.facts.why == "divergence"]  # the same turn, as the spikes' detector has it
        return seen(f"{f.title}.", [*found, *rises], first=f.first_step, last=f.last_step)
    if why := lacking(s.run, divergence.LEAST_VALUES):
        return cannot_tell(why)
    _, x = usable(s.run)
    return absent(f"The loss does not turn round: it ends at {last_level(x):.3g}, and its lowest level is {_lowest(x):.3g}.")


def _turns(s: Symptoms) -> list[Finding[divergence.Facts]]:
    return [f for f in s.of(divergence.Facts) if f.facts.above_first is None]


def loss_came_back_late(s: Symptoms) -> Sign:
    """The loss stands above its first level for a tenth of the run and comes back in the end."""
    if found := [f for f in s.of(divergence.Facts) if f.facts.above_first is not None]:
        f = found[0]
        return seen(f"{f.title}.", found, first=f.first_step, last=f.last_step)
    if why := lacking(s.run, divergence.LEAST_VALUES) or begins_late(s.run):
        return cannot_tell(why)
    _, x = usable(s.run)
    first = first_level(x)
    if first <= 0:
        return does_not_arise(f"the loss begins at {first:.3g}, of which no share can be taken.")
    n = int((x > divergence.CLIMB * first).sum())
    return absent(f"{n} of {len(x)} values of the loss stand a quarter above its first level of {first:.3g}.")


def loss_ends_above_start(s: Symptoms) -> Sign:
    """The last level of the loss lies above its first values by more than the scatter of single values."""
    if why := lacking(s.run, 2 * BEGINNING + 1) or begins_late(s.run):
        return cannot_tell(why)
    step, x = usable(s.run)
    first, last = first_level(x), last_level(x)
    judged = metric(s.run)
    if judged is not None and first < 0 and not _LIKELIHOOD.search(judged.tag):
        return does_not_arise(
            f"{judged.tag} begins at {first:.3g}: below zero a loss that is no likelihood does not say which way it is to go."
        )
    if judged is not None and judged.name == "loss.eval":  # grows by answers that are too sure while more of them are right
        above = last > first + (divergence.CLIMB - 1) * abs(first)
    elif len(x) < SCATTERED:  # too few to measure their scatter: all the last above all the first is chance once in 20
        above = float(x[-BEGINNING:].min() - x[:BEGINNING].max()) > (divergence.CLIMB - 1) * abs(first)
    else:
        above = last > first + max(scatter(x), LEAST_FALL * abs(first))  # less is a loss that stands still
    if above and (lifted := kl_weight_lifts_loss(s)).state == SEEN:
        return absent(lifted.text)
    if above and (against := improves_after(s.run, int(step[0]))):
        return absent(f"The loss ends at {last:.4g}, above its first level of {first:.4g}, but {against}.")
    if above:
        return seen(f"The loss ends at {last:.4g}, above its first level of {first:.4g}.", first=int(step[0]), last=int(step[-1]))
    how = "hardly above" if last > first else "no higher than"
    return absent(f"The loss ends at {last:.4g}, {how} its first level of {first:.4g}.")


def loss_settles_elsewhere(s: Symptoms) -> Sign:
    """After a jump that lasts the loss falls again, or holds a new level below its first one."""
    jumps = [f for f in s.of(loss_spike.Facts, traps=True) if f.facts.class_ == "non_recovering" or f.facts.why in ("step", "data")]
    # of one that is not alive the steps were done again
    jumps = [f for f in jumps if np.isfinite(f.facts.top) and f.facts.why != "divergence" and f.facts.alive]
    if not jumps:
        if turned := _turns(s):
            return absent(
                f"The loss climbs from step {turned[0].facts.start} to its end at {turned[0].facts.final:.3g}, without a jump.", turned
            )
        why = lacking(s.run, LEAST)
        return cannot_tell(why) if why else does_not_arise("the loss makes no jump that lasts, so no level follows one.")
    told = [_after(s, f) for f in jumps]
    return next((t for state in ("seen", "absent") for t in told if t.state == state), told[0])


def _after(s: Symptoms, f: Finding[loss_spike.Facts]) -> Sign:
    """What the loss did after one jump."""
    step, x = usable(s.run)
    peak, start = x[step >= f.facts.peak], x[step >= f.facts.start]
    if len(start) < AFTER:
        return cannot_tell(f"too few values follow the jump at step {f.facts.start} ({len(start)}; {AFTER} are needed).")
    level = f.facts.level
    place: dict[str, Any] = {"first": f.facts.start, "last": int(step[-1])}
    if len(peak) >= AFTER // 2:
        top, last = median(peak[:5]), median(peak[-max(len(peak) // 10, 5) :])
        if last - level < (1 - CAME_BACK) * (top - level):
            return seen(
                f"After the jump at step {f.facts.start} the loss falls again, from {top:.3g} to {last:.3g}.", with_turns(s, [f]), **place
            )
    early, late = median(start[2:12]), median(start[-max(len(start) // 5, 10) :])
    if late - level <= HOLDS * (early - level) and late < first_level(x):
        return seen(
            f"After the jump at step {f.facts.start} the loss holds its level: {early:.3g} at first, {late:.3g} at the end.",
            with_turns(s, [f]),
            **place,
        )
    how = "climbs on" if late > early else "stays above its first level"
    return absent(f"After the jump at step {f.facts.start} the loss {how}: {early:.3g} at first, {late:.3g} at the end.", [f])


def loss_level_stepped(s: Symptoms) -> Sign:
    """The loss steps up to another level, without a spike."""
    found = s.of(level_shift.Facts)
    if up := [f for f in found if f.facts.up]:
        f = max(up, key=lambda f: f.facts.size)
        return seen(f"{f.title}.", up[:3], first=f.facts.step, last=f.facts.step)
    if why := lacking(s.run, level_shift.LEAST_VALUES):
        return cannot_tell(why)
    if found:
        return absent(f"Every lasting step of the loss goes the other way: {found[0].title[0].lower()}{found[0].title[1:]}.", found[:1])
    least = level_shift.smallest_effect(s.run)
    if not least:
        return does_not_arise("the loss is not positive throughout, so no step of it can be told.")
    if least.startswith("no step"):
        return cannot_tell(f"{least.partition(': ')[2]}, so a step of the loss would not have shown.")
    return absent(f"The loss stays on its curve: {least} would have shown.")


def loss_swings(s: Symptoms) -> Sign:
    """The loss swings wildly from a step on, many times wider than before."""
    if found := [f for f in s.of(oscillation.Facts) if f.facts.kind == "wild"]:
        return seen(f"{found[0].title}.", found, do=_momentum(s), first=found[0].facts.start, last=found[0].facts.end)
    if why := lacking(s.run, oscillation.LEAST_VALUES):
        return cannot_tell(why)
    _, x = usable(s.run)
    if not (x > 0).all():
        return does_not_arise("the loss is not positive throughout, so its swing has no level to be measured by.")
    early, late = np.array_split(np.log(x), 2)
    return absent(f"The loss scatters by {scatter(early):.2%} of its level in the first half and by {scatter(late):.2%} in the second.")


def _momentum(s: Symptoms) -> tuple[str, ...]:
    """What to do about a momentum above the usual 0.9: a steady gradient makes steps of 1 / (1 - momentum) times the rate."""
    told = settings.named(s.run, "momentum sgd_momentum beta1 adam_beta1")
    value = settings.as_number(told[-1].value) if told else None
    if value is None or not LONG_MOMENTUM <= value < 1:
        return ()
    return (f"Lower the momentum ({told[-1].key} is {value:g}): a steady gradient makes steps of {1 / (1 - value):.3g} times the rate.",)


def loss_still_falling(s: Symptoms) -> Sign:
    """The last fifth of the training loss lies below the fifth before it by more than chance: the run goes on learning."""
    if why := lacking(s.run, 25, "loss.train"):
        return cannot_tell(why)
    step, x = usable(s.run, "loss.train")
    before, last = _fifth(x, 4), _fifth(x, 5)
    error = math.hypot(*(error_of_median(robust_sigma(part), len(part)) for part in (before, last)))
    a, b = median(before), median(last)
    if a - b > ERRORS * error:
        return seen(f"The training loss still falls at the end: {a:.4g} in the fourth fifth of its values, {b:.4g} in the last.", first=int(step[-len(last)]), last=int(step[-1]))  # fmt: skip
    return absent(
        f"The training loss falls by no more than its scatter at the end: {a:.4g} in the fourth fifth of its values, {b:.4g} in the last."
    )


def trained_well_before(s: Symptoms) -> Sign:
    """Before the first trouble the loss had fallen for long at the full learning rate."""
    found = trouble(s.findings)
    if not found:
        return does_not_arise("no trouble of the loss has a step, so there is nothing before it to judge.")
    shape = rate_shape.shape(s.run)
    if shape is None:
        return cannot_tell("the learning rate was not logged.")
    if why := lacking(s.run, BEGINNING, "loss.train") or begins_late(s.run):
        return cannot_tell(why)
    step, x = usable(s.run, "loss.train")
    at, length = found[0].first_step or 0, int(step.max() - step.min())
    before = x[(step >= shape.peak_step) & (step < at)]
    if at - shape.peak_step < FULL * length or not len(before):
        return absent(
            f"Trouble begins at step {at}, {max(at - shape.peak_step, 0)} steps after the rate is first at its peak (of {length} in the log)."
        )
    first, level = first_level(x), median(before[-15:])
    told = f"(loss {first:.3g} at the beginning, {level:.3g} before step {at})"
    if 0 < level <= FALLEN * first:
        return seen(f"From the peak of the rate on the run trained for {at - shape.peak_step} steps before the trouble, and learned well {told}.", first=shape.peak_step, last=at)  # fmt: skip
    return absent(f"The run had learned little before the trouble {told}.")


def _lowest(x: Floats) -> float:
    width = divergence.FEW
    return float(np.median(np.lib.stride_tricks.sliding_window_view(x, width), axis=1).min()) if len(x) >= width else float(x.min())


def _fifth(x: Floats, which: int) -> Floats:
    return x[(which - 1) * len(x) // 5 : which * len(x) // 5]
