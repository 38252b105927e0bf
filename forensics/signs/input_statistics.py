"""What was logged of the inputs themselves: their mean, spread or largest value, and the share of their labels, beside the loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from forensics.case import Finding
from forensics.detectors import divergence, level_shift, loss_spike, train_eval_gap
from forensics.run import settings
from forensics.run.metrics_in_words import worded
from forensics.run.robust import median, robust_sigma
from forensics.run.scores import curve
from forensics.run.series import Floats, Ints, Series
from forensics.run.usable_values import interval
from forensics.signs import not_finite
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from forensics.spikes.selected import Spike, of_note
from parsers.lazy_regex import lazy_re
from parsers.name_rules import words
from parsers.tables import Run

NAMED = r"(?:x|in|inputs?|images?|imgs?|pixels?|waves?|waveforms?|audio|fbanks?|filterbanks?|mfccs?|spectrograms?|mels?)"  # no seconds, counts or activations go by these
LOOSE = r"(?:feat|feats|features?|data|batch|signals?|obs|observations?)"
STATISTIC = r"(?:mean|std|stddev|absmax|maxabs|max|maximum|min|minimum|rms|var|variance)"
# Nothing else may stand in the tag: who measures a loss, a gradient, an activation, a time or a held-out set says so
AROUND = r"(?:abs|train|training|buffer|replay|rollout|stats?|statistics|raw|step|per|channel|ch|of|the|spec|mel|global|debug|monitor|\d+)"
_NOT_THEIRS = (  # what a model makes, or is to make
    r"(?:targets?|labels?|y|outputs?|pred\w*|rewards?|returns?|loss|grads?|weights?|params?|time|len|lengths?|normali[sz]ed|scaled)"
)
# a field in a group of the logger: data/temp_mean, features/age_std
_FIELD = rf"^(?!.*\b{_NOT_THEIRS}\b)(?:train[ /])?(?:data|inputs?|feat|feats|features?)/[a-z][a-z0-9 ]{{0,30}} {STATISTIC}$"
INPUTS = rf"^(?=.*\b(?:{NAMED}|{LOOSE})\b)(?=.*\b{STATISTIC}\b)(?:(?:{NAMED}|{LOOSE}|{STATISTIC}|{AROUND})(?:[ /]+|$))+$|{_FIELD}"
TARGETS = rf"^(?:(?:{NAMED}|{LOOSE}|{AROUND})[ /])*(?:tgts?|targets?|labels?|y)(?: abs)?[ /]{STATISTIC}$"
LABELS = r"^(?:train(?:ing)?[ /])?(?:(?:pos|positive)s?(?: (?:class|label)s?)? (?:rate|share|frac|fraction|ratio)|(?:frac|fraction|share) (?:of )?(?:pos|positive)s?|(?:y|labels?|targets?) (?:mean|std|rate))$"
_OWN = lazy_re(rf"\b{NAMED}\b")
# "feature stats on 256 utts.mean": what a log says in words it says of what it names, if that is nothing that the model makes
_OF_INPUTS = lazy_re(
    rf"^(?!.*\b{_NOT_THEIRS}\b)"
    rf"(?=.*\b(?:{NAMED}|{LOOSE})\b).*\b(?:mean|std|stddev)$"
)
_AN_END = lazy_re(r"\b(?:x|batch|images?|pixels?|inputs?|features?)[ /](?:min|max)$")
_LARGEST = lazy_re(r"\b(?:absmax|maxabs|max|maximum)\b")
_CENTRE_OR_SPREAD, _SPREAD = lazy_re(r"\b(?:mean|std|stddev)\b"), lazy_re(r"\b(?:std|stddev)\b")
NOT_LOGGED = "no mean, spread or largest value of the inputs was logged."

LEAST, NEAR = 10, 5  # bound: five values on either side of a change, whose median two odd ones do not move
# statistical: no batch of sound data lies as far off, of heavy tails neither as many sigmas nor as many times its size
SIGMAS, TIMES = 10.0, 5.0
AT_ONCE = 2.0  # times their size, of a whole stretch of rows that lie where the loss is high and nowhere else: no tail comes in a row
STRETCH = loss_spike.STRETCH  # rows: as many make a stretch of the loss
APART = 4.0  # statistical: spreads between the levels before and after; a steady drift through the whole run makes 2.7
BEYOND = 0.9  # share of the values that lie on their own side of the middle
BESIDE = 2  # logged intervals between a step of the inputs and that of the loss
WIDE = 50.0  # bound: of inputs that were scaled none in any data set lies fifty deviations out; a byte of a picture reaches 255
FIELDS = 3  # bound: two spreads may be those before and after all scaling, three are of fields, of which some count few things
FAR = 10.0  # unit: ten standard deviations of inputs that were scaled as usual, to mean 0 and spread 1
LEAP = 100.0  # unit: two decades above all that came before; measured: of 94 statistics two leap (416 and 3,678 times, both faults), others 3.1 at most
RAW = 1000.0  # bound: every batch of scaled inputs stays below it, as a picture of bytes does (255); whole numbers may be ids of tokens


def _logged(run: Run, *, labels: bool = False) -> tuple[Series, ...]:
    found = (*worded(run, INPUTS), *(worded(run, LABELS) if labels else ()))
    return tuple(p for p in found if p.usable.sum() >= LEAST)


def inputs_absurd_at_spike(s: Symptoms) -> Sign:
    """A statistic of the inputs stands ten sigmas and five times its size off at the rows where the loss spikes, a few in a row, and nowhere else."""
    return _absurd(s, many=False)


def inputs_absurd_in_stretch(s: Symptoms) -> Sign:
    """A statistic of the inputs stands ten sigmas and twice its size off all through a stretch of high loss, five rows or more, and nowhere else."""
    return _absurd(s, many=True)


def _absurd(s: Symptoms, *, many: bool) -> Sign:
    logged, spikes = _logged(s.run), of_note(s)
    if not logged:
        return cannot_tell(NOT_LOGGED)
    if not spikes:
        return does_not_arise("the loss does not spike, so there are no inputs to look at.")
    other = ""
    for p in logged:
        step, x = p.step[p.usable], p.value[p.usable]
        off = np.abs(x - np.median(x))
        rows = np.flatnonzero((off > SIGMAS * robust_sigma(x)) & (off > (AT_ONCE if many else TIMES) * median(np.abs(x))) & (off > 0))
        hit = [f for f in spikes if len(_within(f, step[rows], p.interval, begins=True))]
        if not len(rows) or not hit:
            continue
        text = f"{p.tag} is {x[rows[0]]:.4g} at step {step[rows[0]]}, where the loss spikes, and {np.median(x):.3g} in the median"
        everywhere = s.of(loss_spike.Facts, traps=True)
        if at_large := sorted(set(step[rows].tolist()) - {int(t) for f in everywhere for t in _within(f, step[rows], p.interval)}):
            other = other or f"{text}; but it is as far off at step {at_large[0]}, too, where it does not spike."
            continue
        longest = max(len(_within(f, step[rows], p.interval)) for f in hit)
        if (longest >= STRETCH) == many:
            first, last = int(step[rows[0]]), int(step[rows[-1]])
            tail = f"; of {len(x)} values {len(rows)} are so far off, all of them where the loss is high."
            return seen(text + tail, hit[:5], where=p.place(s.run, int(np.flatnonzero(p.usable)[rows[0]])), first=first, last=last)
        other = other or f"{text}, which is a matter of {longest} value{'s' if longest > 1 else ''} in a row."
    return absent(
        other or f"{_told(logged)} no further off where the loss spikes (step {spikes[0].facts.peak}) than elsewhere.", spikes[:1]
    )


def _within(f: Spike, step: Ints, gap: int, *, begins: bool = False) -> Ints:
    """The steps at which a spike lasts; where it `begins`, until its peak, alone."""
    end = f.facts.peak if begins or f.facts.end is None else max(f.facts.end, f.facts.peak)
    return step[(step > f.facts.start - gap) & (step < end + gap)]


def inputs_leap(s: Symptoms) -> Sign:
    """A statistic of the inputs leaps to a hundred times all that came before, whatever the loss does."""
    logged = _logged(s.run)
    if not logged:
        return cannot_tell(NOT_LOGGED)
    for p in logged:
        step, x = p.step[p.usable], np.abs(p.value[p.usable])
        before = np.maximum.accumulate(x)[:-1]
        rows = np.flatnonzero((x[1:] > LEAP * before) & (before > 0))
        if len(rows := rows[rows >= NEAR - 1]):
            row = int(rows[0]) + 1
            text = f"{p.tag} leaps from {before[row - 1]:.3g} at most to {x[row]:.4g} at step {step[row]}."
            return seen(text, where=p.place(s.run, int(np.flatnonzero(p.usable)[row])), first=int(step[row]))
    return absent(f"{_told(logged)} and never leap{'s' if len(logged) == 1 else ''} to {LEAP:.0f} times all before.")


def data_not_finite_first(s: Symptoms) -> Sign:
    """At the first step that is not finite a statistic of that batch's inputs or targets is not finite either, and was until then: it came in with them."""
    first = not_finite.first_of(s)
    if first is None or first.facts.first is None:
        return does_not_arise("loss and gradient norm are finite.")
    logged = [p for p in (*worded(s.run, INPUTS), *worded(s.run, TARGETS)) if p.alive.sum() >= LEAST]
    at = {p.tag: (p, np.flatnonzero(p.alive & (p.step == first.facts.first))) for p in logged}
    there = [(p, int(rows[0])) for p, rows in at.values() if len(rows)]
    if not there:
        return cannot_tell(f"no statistic of inputs or targets was logged at step {first.facts.first}, the first that is not finite.")
    for p, row in there:
        if not np.isfinite(p.value[row]) and np.isfinite(p.value[:row]).all():
            text = f"{p.tag} is {p.value[row]:g} at step {p.step[row]}, the first that is not finite, and {np.abs(p.value[:row]).max():.3g} at most before"
            return seen(f"{text}.", [first], where=p.place(s.run, row), first=int(p.step[row]))
    p, row = there[0]
    return absent(f"{p.tag} is {p.value[row]:.4g} at step {p.step[row]}, the first that is not finite.", [first])


def inputs_step_with_loss(s: Symptoms) -> Sign:
    """A statistic of the inputs or their labels goes to another level for good where the level of the loss steps, the loss jumps, or the evaluation
    turns for the worse."""
    logged = _logged(s.run, labels=True)
    kinds = (level_shift.Facts, loss_spike.Facts, divergence.Facts, train_eval_gap.Facts)
    changes = [f for f in s.of(*kinds, traps=True) if f.first_step is not None]
    if not logged:
        return cannot_tell(NOT_LOGGED)
    if not changes:
        return does_not_arise("neither does the level of the loss step nor does the loss jump, and the evaluation does not turn.")
    for p in logged:
        step, x = p.step[p.usable], p.value[p.usable]
        reach = BESIDE * max(p.interval, interval(s.run))
        for f in changes:
            if (told := _steps(step, x, *_span(s.run, f), reach)) is not None:
                row, low, high = told
                text = f"{p.tag} goes from {low:.3g} to {high:.3g} at step {step[row]} and stays there: {f.title[0].lower()}{f.title[1:]}."
                return seen(text, [f], where=p.place(s.run, int(np.flatnonzero(p.usable)[row])), first=int(step[row]))
    return absent(f"{_told(logged)} on no other level after step {changes[0].first_step}, where the loss changes.", changes[:1])


def _span(run: Run, f: Finding[Any]) -> tuple[int, int]:
    """First and last step between which the loss comes to its other level: of an evaluation, the best and the one behind it."""
    first = int(f.first_step or 0)
    if isinstance(f.facts, train_eval_gap.Facts):
        evaluated = curve(run)[0]
        return first, int(min(evaluated[evaluated > first], default=first))
    return first, max(first, int(getattr(f.facts, "peak", first)))


def _steps(step: Ints, x: Floats, first: int, last: int, reach: int) -> tuple[int, float, float] | None:
    """(row, level before, level after) of a step that the values make within reach of a change of the loss, and never take back."""
    before, after = x[step < first - reach], x[step > last + reach]
    if min(len(before), len(after)) < NEAR:
        return None
    low, high = median(before), median(after)
    middle, up = (low + high) / 2, high > low
    if abs(high - low) <= APART * max(robust_sigma(before), robust_sigma(after)):
        return None
    if np.mean((before < middle) == up) < BEYOND or np.mean((after > middle) == up) < BEYOND:
        return None
    if (np.median(before[-NEAR:]) < middle) != up or (np.median(after[:NEAR]) > middle) != up:  # it steps earlier or later than the loss
        return None
    row = int(np.argmax((step >= first - reach) & ((x > middle) == up)))
    return row, low, high


def inputs_far_from_unit(s: Symptoms) -> Sign:
    """The inputs have a mean, or a spread, above ten from the first value to the last, or a largest one above a thousand: they come in as they were
    measured."""
    for p in (p for p in _logged(s.run) if _LARGEST.search(words(p.tag))):
        x = p.value[p.usable]
        if x.min() > RAW and (x % 1).any():
            return seen(
                f"{p.tag} is {x.min():.3g} at least, {np.median(x):.3g} in the median of {len(x)} values; scaled inputs stay far below {RAW:g}.",
                where=p.place(s.run, 0),
                first=int(p.step[0]),
            )
    found = [p for p in _logged(s.run) if _CENTRE_OR_SPREAD.search(words(p.tag))]
    logged = [p for p in found if _OWN.search(words(p.tag))] or _of_batches(found)
    if not logged:
        return _printed(s.run) or cannot_tell("neither mean nor spread of the inputs was logged.")
    for p in logged:
        x = np.abs(p.value[p.usable])
        if x.min() > FAR:
            text = f"{p.tag} is {np.median(p.value[p.usable]):.4g} in the median and {x.min():.3g} off zero at least in {len(x)} values"
            return seen(
                f"{text}; inputs that are scaled have a mean near 0 and a spread near 1.", where=p.place(s.run, 0), first=int(p.step[0])
            )
    return absent(f"{_told(logged)} below {FAR:g} at one step or more.")


def _of_batches(found: Sequence[Series]) -> Sequence[Series]:
    """What is said of a batch or of features in general is said of the inputs where mean and spread stand beside each other, both far from those of scaled ones."""
    spreads = [bool(_SPREAD.search(words(p.tag))) for p in found]
    far = all(float(np.abs(p.value[p.usable]).min()) > FAR for p in found)
    return found if far and any(spreads) and not all(spreads) else ()


def _printed(run: Run) -> Sign | None:
    """What a run printed once of its inputs: a spread and a mean ("X_train: mean=152.3 std=81.2"), the last of them after all scaling."""
    found = {words(t.key): t for t in settings.every(run) if _OF_INPUTS.search(words(t.key)) and settings.as_number(t.value) is not None}
    spread = [t for key, t in found.items() if _SPREAD.search(key)]
    if not spread and (
        ends := [t for t in settings.every(run) if _AN_END.search(words(t.key)) and settings.as_number(t.value) is not None]
    ):
        text = f"The log says {', '.join(f'{t.key} = {t.value}' for t in ends[:2])}"
        wide = max(abs(float(t.value)) for t in ends) > WIDE
        return (seen if wide else absent)(f"{text}{'; inputs that are scaled lie around 0' * wide}.", where=ends[0].where)
    if not spread or len(spread) == len(found):
        return None
    far = [t for t in found.values() if abs(float(t.value)) > FAR]
    text = ", ".join(f"{' '.join(t.key.split()).replace(' .', '.')} = {t.value}" for t in (far or [*found.values()])[:2])
    apart = sum(abs(float(t.value)) > FAR for t in spread)
    if not far or apart < (len(spread) if len(spread) < FIELDS else len(spread) / 2):
        return absent(f"The log says {text}.", where=spread[-1].where)
    return seen(f"The log says {text}; inputs that are scaled have a mean near 0 and a spread near 1.", where=spread[-1].where)


def _told(logged: Sequence[Series]) -> str:
    middle = ", ".join(f"{p.tag} ({np.median(p.value[p.usable]):.3g} in the median)" for p in logged[:3])
    return f"{middle} {'stands' if len(logged) == 1 else 'stand'}"
