"""Losses that the logger added up instead of printing them."""

from __future__ import annotations

from forensics.run import added_up
from forensics.run.series import series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, seen

SUBJECT = "logged_wrongly"  # the other half of it
EFFECTS = {"loss_added_up": "loss.train"}  # a symptom of its own, for which there is no detector


def loss_added_up(s: Symptoms) -> Sign:
    """From some step on each logged loss is the one before plus a loss like those before: a total that is not set back, or only every so many
    values. What was added is judged in its place."""
    loss = series(s.run, "loss.train")
    if loss is None or len(loss) < 2 * added_up.LEAST:
        return cannot_tell("the training loss was not logged often enough to show a total that is not set back.")
    if loss.summed is None:
        return absent(f"The {len(loss)} values of {loss.tag} are no running total.")
    row, every = loss.summed
    first, last = int(loss.step[row]), int(loss.step[-1])
    total = float(loss.value[max(row - 1, 0) :][-((len(loss) - 1) % every + 1) if every else 0 :].sum())
    back = f"set back only every {every} values" if every else "not set back"
    text = (
        f"From step {first} on {loss.tag} is a running total that is {back}: it is logged as {total:.4g} at step {last}, and what is "
        f"added each time goes from {loss.value[row]:.4g} to {loss.value[-1]:.4g}"
    )
    return seen(f"{text}.", where=loss.place(s.run, row), first=first, last=last)
