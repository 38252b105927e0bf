"""What a known good run beside the run in question shows: signs of two runs, in the states and words of those of one.

A sign is a public function ``name(b: Beside, s: Symptoms) -> Sign``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from forensics.case import Clue, Finding, Hypothesis
from forensics.causes.files import causes
from forensics.detectors import loss_spike
from forensics.many_runs.baseline import Beside
from forensics.many_runs.side_by_side import own_spikes
from forensics.run import settings
from forensics.signs.sign import SEEN, Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

MORE = 1.5  # times the baseline's rate: the smallest step between two rates of a usual search grid (1, 1.5, 2, 3, 5 ...)
SAME = 1.05  # times the baseline's: rates that are read off a log differ by its cadence
HALF = 0.5  # of the baseline's: a warmup, or rate, that is halved
NEAR = 2  # steps between two spikes that are one batch: a loss shows the batch of its step or of the one before
EQUAL = 10  # values that agree to the printed digits: chance does not do that
TELLING = 10.0  # suspicion from which on a setting may change what is computed (forensics.many_runs.config_diff)
SUSPECT = 30.0  # suspicion from which on a setting is no name and not excused


def rate_above_baseline(b: Beside, s: Symptoms) -> Sign:
    """The peak rate is more than one and a half times that of the baseline."""
    return _rate(b, lambda ratio: ratio > MORE)


def rate_below_baseline(b: Beside, s: Symptoms) -> Sign:
    """The peak rate is less than half that of the baseline."""
    return _rate(b, lambda ratio: ratio < HALF)


def rate_like_baseline(b: Beside, s: Symptoms) -> Sign:
    """The baseline took the same peak rate, or a higher one, and its loss went another way."""
    parted = b.parted is not None and (b.parted.level is not None or b.parted.excursion is not None)
    return _rate(b, lambda ratio: ratio <= SAME) if parted else does_not_arise("the losses of this run and of the baseline do not part.")


def warmup_shorter_than_baseline(b: Beside, s: Symptoms) -> Sign:
    """The warmup takes less than half the steps of the baseline's."""
    here, there = (r.warmup for r in b.recipes)
    if here is None or there is None:
        return cannot_tell("the warmup of this run or of the baseline is not known.")
    text = f"The baseline warms up over {there:g} steps, this run over {here:g}."
    return seen(text, where=_where(b, "warmup_steps"), here=here, there=there) if here < HALF * there else absent(text)


def clips_unlike_baseline(b: Beside, s: Symptoms) -> Sign:
    """The baseline clips the gradients, and this run does not."""
    here, there = (r.clip for r in b.recipes)
    if here is None or there is None:
        return cannot_tell("the config of this run or of the baseline does not say whether gradients were clipped.")
    if there and not here:
        return seen(f"The baseline clips the gradients at {there:g}, this run does not.", where=_where(b, "clip"), there=there)
    if here:
        return absent(
            f"This run clips the gradients at {here:g}, the baseline {f'at {there:g}' if there else 'does not'}.", where=_where(b, "clip")
        )
    return absent("Neither this run nor the baseline clips the gradients.", where=_where(b, "clip"))


def precision_unlike_baseline(b: Beside, s: Symptoms) -> Sign:
    """This run is in fp16, and the baseline is in another precision."""
    here, there = settings.precision(b.run), settings.precision(b.base)
    if here is None or there is None:
        return cannot_tell("the config of this run or of the baseline does not say which precision was used.")
    text = f"The baseline runs in {there}, this run in {here}."
    return seen(text, where=_where(b, "precision")) if here == "fp16" != there else absent(text, where=_where(b, "precision"))


def batch_spikes_in_baseline_too(b: Beside, s: Symptoms) -> Sign:
    """The baseline reads the same data and spikes on the same batch."""
    return _batch(b, s, in_both=True)


def batch_passes_in_baseline(b: Beside, s: Symptoms) -> Sign:
    """The baseline reads the same data and passes the batch unharmed."""
    return _batch(b, s, in_both=False)


def optimizer_differs_from_baseline(b: Beside, s: Symptoms) -> Sign:
    """Epsilon or beta2 is another number than in the baseline."""
    return _differs(b, "eps", "beta2")


def init_differs_from_baseline(b: Beside, s: Symptoms) -> Sign:
    """The std of the initial weights is another number than in the baseline."""
    return _differs(b, "init_std")


def evaluation_differs_from_baseline(b: Beside, s: Symptoms) -> Sign:
    """A setting of the evaluation is another one than in the baseline."""
    keys = [d["key"] for d in b.differs if d["kind"] == "evaluation" and d["suspicion"] >= SUSPECT]
    if keys:
        return seen(f"The evaluation is set otherwise than in the baseline: {', '.join(keys[:4])}.", keys=keys)
    if not all(r.tables["config"].num_rows for r in (b.run, b.base)):
        return cannot_tell("there is no config of this run or of the baseline.")
    return absent("The configs of this run and of the baseline agree in all settings of the evaluation.")


def parted_without_cause(b: Beside, s: Symptoms) -> Sign:
    """One config, equal values at first, then other ones: the machine computed something else."""
    if b.parted is None:
        return cannot_tell("the losses of this run and of the baseline have too few steps in common.")
    if not all(r.tables["config"].num_rows for r in (b.run, b.base)):
        return cannot_tell("there is no config of this run or of the baseline.")
    differs = [d["key"] for d in b.differs if d["kind"] not in ("name or place", "environment") and d["suspicion"] >= TELLING]
    if differs:
        return does_not_arise(f"settings differ from those of the baseline ({', '.join(differs[:3])}), and may part the runs.")
    if b.parted.equal < EQUAL:
        return does_not_arise("the losses of this run and of the baseline are not equal at first.")
    if b.parted.first_unequal is None:
        return absent(f"This run and the baseline have equal losses at all {b.parted.common} common steps.", b.findings)
    text = f"With one config, this run and the baseline have equal losses to step {b.parted.last_equal}, and other ones from step {b.parted.first_unequal} on."
    return seen(text, b.findings, first=b.parted.first_unequal, equal=b.parted.equal)


def _rate(b: Beside, holds: Any) -> Sign:
    here, there = (r.rate for r in b.recipes)
    if not here or not there:
        return cannot_tell("the learning rate of this run or of the baseline is not known.")
    text = f"The baseline's peak rate is {there:.3g}, that of this run {here:.3g}."
    where = _where(b, "lr")
    return (
        seen(text, b.findings, where=where, rate=here, there=there, ratio=here / there)
        if holds(here / there)
        else absent(text, where=where)
    )


def _batch(b: Beside, s: Symptoms, *, in_both: bool) -> Sign:
    starts = [f.facts.start for f in s.of(loss_spike.Facts)]
    if not starts:
        return does_not_arise("the loss does not spike, so that no batch is to be compared.")
    if b.order["order"] != "same":
        return cannot_tell("the data of this run and of the baseline are not known to come in one order.")
    loss = own_spikes(b.base)[1]
    shift = b.order["shift"] or 0
    if loss is None or not loss.step.min() <= starts[0] - shift <= loss.step.max():
        return cannot_tell(f"the loss of the baseline was not logged at the batch of step {starts[0]}.")
    there = [f.start + shift for f in own_spikes(b.base)[0]]
    both = [x for x in starts if any(abs(x - t) <= NEAR for t in there)]
    if both:
        text = f"The baseline reads the same data in the same order, and spikes there, too (step {both[0]})."
        return seen(text, first=both[0]) if in_both else absent(text)
    text = f"The baseline reads the same data in the same order, and passes step {starts[0]} unharmed."
    return absent(text) if in_both else seen(text, first=starts[0])


def _differs(b: Beside, *names: str) -> Sign:
    pairs = [(n, settings.number(b.base, n), settings.number(b.run, n)) for n in names]
    known = [(n, x, y) for n, x, y in pairs if x is not None and y is not None]
    if not known:
        return cannot_tell(f"the configs of both runs do not name {' or '.join(names)}.")
    other = [f"{n} is {x:g} there and {y:g} here" for n, x, y in known if x != y]
    where = _where(b, next((n for n, x, y in known if x != y), known[0][0]))
    if other:
        return seen(f"Unlike in the baseline, {', '.join(other)}.", where=where)
    return absent(f"As in the baseline, {', '.join(f'{n} is {y:g}' for n, _, y in known)}.", where=where)


def _where(b: Beside, what: str) -> str:
    told = settings.setting(b.run, what)
    return told.where if told is not None else ""


def clues(hypotheses: Sequence[Hypothesis], b: Beside, findings: Sequence[Finding[Any]]) -> list[Hypothesis]:
    """The causes with what the baseline says about them: the signs of their files' ``beside`` tables, with the weights there."""
    symptoms, ids = Symptoms(b.run, tuple(findings)), tuple(f.id for f in b.findings)
    out = []
    for h in hypotheses:
        told = causes()[h.id].beside if h.id in causes() else {}
        signs = [(globals()[name](b, symptoms), weight) for name, weight in told.items()]
        out.append(replace(h, clues=(*h.clues, *(Clue(sign.text, weight, ids) for sign, weight in signs if sign.state == SEEN))))
    return out
