"""What the logging made of the numbers: other units, filters, values left out, sums for means."""

from __future__ import annotations

import numpy as np

from forensics.case import Finding
from forensics.detectors import logger_artefact
from forensics.run import loss_factor, meter_dips, settings
from forensics.run.evaluations import outcomes
from forensics.run.series import series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen


def unit_artefact(s: Symptoms) -> Sign:
    """The first loss is ln of the vocabulary in bits, or times the accumulation steps."""
    found = _made(s, "base_2", "times_accumulation")
    if found:
        return seen(f"{found[0].title}.", found, first=found[0].facts.step, last=found[0].last_step)
    if outcomes(s.run) is None:
        return cannot_tell("config does not say how many classes or tokens there are.")
    m = loss_factor.over_chance(s.run)
    if m is None:
        return cannot_tell("the loss of the untrained model was not logged as a cross entropy.")
    return absent(f"The first loss is {m.ratio:.3g} times {m.against}.", where=m.where)


def loss_times_constant(s: Symptoms) -> Sign:
    """At first the training loss is n times the evaluation loss, or n times chance, and config sets n, or n times both: a sum for a mean. Or it is one n-th of
    the evaluation loss throughout: divided twice."""
    measured = loss_factor.measured(s.run)
    if not measured:
        return cannot_tell("neither an early evaluation loss nor chance level is known to hold the first training losses against.")
    match = loss_factor.configured(s.run, measured)
    if match is not None:
        m, n = match
        text = f"The training loss is {m.ratio:.3g} times {m.against} at step {m.step}, and {n.says} is {n.value}."
        return seen(text, where=n.where, first=m.step, last=m.last)
    if both := loss_factor.agreed(measured):
        text = f"The training loss is {both.ratio:.3g} times {both.against} and {measured[1].ratio:.3g} times {measured[1].against}"
        return seen(f"{text}: one factor, which no setting tells.", where=both.where, first=both.step, last=measured[1].last)
    if part := loss_factor.divided(s.run):
        text = f"The training loss is 1/{round(1 / part.ratio)} of {part.against} at each evaluation from step {part.step} to {part.last}"
        return seen(f"{text}, while both get better.", where=part.where, first=part.step, last=part.last)
    m = measured[0]
    text = f"The training loss is {m.ratio:.3g} times {m.against} at step {m.step}"
    if m.ratio >= loss_factor.LEAST and not loss_factor.candidates(s.run):
        return cannot_tell(f"config names no batch size, accumulation, length or number of processes: {text}.")
    return absent(f"{text}{', which is no factor that config sets' if m.ratio >= loss_factor.LEAST else ''}.", where=m.where)


def nan_filter_made_value(s: Symptoms) -> Sign:
    """A logged loss is what the Hugging Face Trainer's NaN filter writes in place of micro-batches that were NaN."""
    found = _made(s, "nan_filter")
    if found:
        return seen(_filtered(found[0]), found, first=found[0].facts.step, last=found[-1].last_step)
    if s.run.framework != "hf-trainer":
        return does_not_arise("the log is not known to be the Hugging Face Trainer's, which alone has this filter.")
    norm = series(s.run, "grad.norm")
    if norm is None or series(s.run, "loss.train") is None:
        what = "gradient norm, which would be NaN in such rows," if norm is None else "training loss"
        return cannot_tell(f"the {what} was not logged.")
    finite = int(np.isfinite(norm.value).sum())
    return absent(
        f"{finite} of {len(norm)} gradient norms are finite, and no loss is what the filter would write.", where=norm.place(s.run, -1)
    )


def trainer_filter_at_work(s: Symptoms) -> Sign:
    """The log is the Hugging Face Trainer's, with its NaN filter on, and no NaN stands in the logged loss."""
    if s.run.framework is None:
        return cannot_tell("the log does not tell which program wrote it.")
    if s.run.framework != "hf-trainer":
        return absent(f"The log is that of {s.run.framework}, not of the Hugging Face Trainer.")
    off = [x for x in settings.named(s.run, "logging_nan_inf_filter") if str(x.value).lower() == "false"]
    if off:
        return absent("Config turns the filter off (logging_nan_inf_filter is false).", where=off[-1].where)
    loss = series(s.run, "loss.train")
    if loss is None:
        return cannot_tell("the training loss was not logged.")
    bad = np.flatnonzero(~np.isfinite(loss.value))
    if len(bad):
        return absent(f"The logged loss shows NaN or infinity at step {loss.step[bad[0]]}.", where=loss.place(s.run, bad[0]))
    text = f"The Hugging Face Trainer wrote the log, and its NaN filter is on as config leaves it; all {len(loss)} losses are finite."
    return seen(text, first=int(loss.step[0]), last=int(loss.step[-1]))


def nan_in_running_average(s: Symptoms) -> Sign:
    """The loss is NaN to the end while the gradient norm or the evaluation loss stays finite: one NaN in an average."""
    found = _made(s, "nan_for_ever")
    if found:
        text = f"{found[0].title.partition(':')[0]}."  # without what it means
        return seen(text, found, first=found[0].first_step, last=found[0].last_step)
    loss = series(s.run, "loss.train")
    if loss is None:
        return cannot_tell("the training loss was not logged.")
    if np.isfinite(loss.value[-1]):
        return absent(f"The last logged loss is finite, {loss.value[-1]:.4g} at step {loss.step[-1]}.", where=loss.place(s.run, -1))
    others = [x for name in ("grad.norm", "loss.eval") if (x := series(s.run, name)) is not None]
    if not others:
        return cannot_tell("neither the gradient norm nor an evaluation loss was logged beside the NaN.")
    if np.isfinite(others[0].value[-1]):
        return cannot_tell(f"the log does not show a finite loss and then NaN beside three finite values of {others[0].tag}.")
    return absent(f"The loss ends as {loss.value[-1]}, and {others[0].tag} ends as {others[0].value[-1]:.4g}.", where=loss.place(s.run, -1))


def clipped_norm_logged(s: Symptoms) -> Sign:
    """The logged gradient norm never exceeds the clipping threshold and often equals it: it was logged after clipping."""
    found = _made(s, "clipped_norm")
    if found:
        return seen(f"{found[0].title}.", found, first=found[0].first_step, last=found[0].last_step)
    norm, clip = series(s.run, "grad.norm"), settings.setting(s.run, "clip")
    if norm is None or not np.isfinite(norm.value).any():
        return cannot_tell("the gradient norm was not logged.")
    number = settings.as_number(clip.value) if clip else None
    if clip is None or number is None or number <= 0:
        return cannot_tell("config does not say at which norm gradients were clipped.")
    top = int(np.nanargmax(np.where(np.isfinite(norm.value), norm.value, np.nan)))
    if norm.value[top] <= number * (1 + logger_artefact.AT_CLIP):
        return cannot_tell(f"the gradient norm came to {norm.value[top]:.3g} at most, and {number:g} is where it is clipped.")
    return absent(
        f"The gradient norm came to {norm.value[top]:.3g}, above the clipping threshold {number:g}.", where=norm.place(s.run, top)
    )


def run_mean_logged(s: Symptoms) -> Sign:
    """A second value of the loss at a step is the mean of all before it (it is left out of the series)."""
    found = _made(s, "run_mean")
    if found:
        return seen(f"{found[0].title}.", found, first=found[0].facts.step, last=found[0].last_step)
    loss = series(s.run, "loss.train")
    if loss is None:
        return cannot_tell("the training loss was not logged.")
    return absent(f"No step of {loss.tag} has a second value that is the mean of the {len(loss)} before it.")


def loss_dips_at_even_distances(s: Symptoms) -> Sign:
    """At even distances the loss is zero, or is off its neighbours by one factor while the gradient norm stays, or a term of it is while the loss stays: the
    meter's doing."""
    found = _made(s, "meter")
    if found:
        return seen(f"{found[0].title}.", found, first=found[0].facts.step, last=found[0].last_step)
    loss = series(s.run, "loss.train")
    if loss is None or loss.usable.sum() < meter_dips.LEAST * meter_dips.APART:
        return cannot_tell("the training loss was not logged often enough to show dips at even distances.")
    return absent(f"No dips to one factor come back at even distances in {loss.usable.sum()} values of {loss.tag}.")


def zeros_at_once(s: Symptoms) -> Sign:
    """Two metrics or more are exactly zero in the same rows, twice or more, and in none other: what failed to read them wrote zeros."""
    if found := _made(s, "zeros"):
        return seen(f"{found[0].title}.", found, first=found[0].facts.step, last=found[0].last_step)
    logged = meter_dips.often_logged(s.run)
    if len(logged) < meter_dips.PAIR:
        return cannot_tell(f"fewer than {meter_dips.PAIR} metrics were logged often enough.")
    return absent(f"No two of {len(logged)} metrics are exactly zero in the same rows alone.")


def _filtered(f: Finding[logger_artefact.Facts]) -> str:
    facts = f.facts
    if not isinstance(facts, logger_artefact.Filtered):
        return f"{f.title}."
    logged = f"The logged loss is {facts.value:.4g} at step {facts.step}, where its level is {facts.level:.4g}"
    if facts.nans is None or facts.expected is None:
        return f"{logged}, in a row whose gradient norm is not finite or before exact zeros."
    which = (
        f"all micro-batches from step {facts.nan_step}"
        if facts.forever
        else f"{facts.nans} of {facts.accumulation} micro-batches of step {facts.nan_step}"
    )
    return f"{logged}; the Trainer's NaN filter writes {facts.expected:.4g} where {which} are NaN."


def _made(s: Symptoms, *kinds: str) -> list[Finding[logger_artefact.Facts]]:
    return [f for f in s.of(logger_artefact.Facts) if f.facts.kind in kinds]
