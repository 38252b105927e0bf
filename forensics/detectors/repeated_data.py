"""Repeated data

What it sees
    After a restart the run does not go on with the data that come next: batches are repeated, skipped, or dealt anew.

How it decides
    With a manifest (then also where no restart was logged): five batches in a row hold the very samples of an earlier stretch
    at another step (the same steps done again after a rollback are no repetition, nor is an order that repeats each epoch);
    ids that count upwards leave a gap, or the epoch ends with batches that nobody saw (skipped); samples come again before the epoch ends (dealt
    anew). Without: a number of each batch (the id of a sample, the tokens in it) is that of an earlier stretch, five times in a row; else the ups and downs of the loss after the restart follow those of an earlier stretch (correlation of at
    least 40 residuals, at least 0.3, and p below 0.01 against surrogates with the same spectrum), which also names the
    offset in steps; or, of a dozen values and more, those that the run began with (one offset, correlation of at least a half). A lower loss that joins the old curve again speaks for data seen before.

Cannot tell
    With neither a restart nor a manifest; without a manifest where fewer than a dozen values follow it (48, where the data do not begin with the first batch), where the offset is no
    multiple of the logging interval, where a loss is the mean of an epoch, or where batches are so large that all are alike. Data that were skipped and never seen
    leave no trace in the loss.

Folklore
    "Loss is lower upon resumption because it repeats samples" (llm-foundry#1277). Lightning drops the rest of the epoch
    or repeats it ; accelerate's loader began at the first batch (accelerate#2016).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from forensics import evidence
from forensics.batches import batch_numbers, data_passes, first_batches, resume_data, resume_loss
from forensics.batches.recurrence import epochs_of
from forensics.batches.resume_data import Change
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run import plan
from forensics.run.series import series
from parsers.tables import Run

NEEDS: list[str] = []
INPUTS = ["restarts"]
MOST = 20  # restarts judged by the loss; bound: the p value is corrected for their number, and each takes a second


@dataclass(frozen=True)
class Facts(BaseFacts):
    """What became of the position in the data."""

    what: str  # repeated, skipped, reshuffled
    step: int  # at which the attempt begins
    offset: int | None  # steps by which the data are behind
    from_start: bool  # it begins again with the very first batch
    how: str  # by its samples, by a number of each batch, or by the ups and downs of the loss
    attempt: int
    p: float | None  # of the loss alone
    share: float | None  # of samples that come again within the epoch
    lower: float | None  # by this share is the loss lower
    joins: int | None  # step where it joins the old curve


def detect(run: Run) -> Iterator[Finding]:
    if len(run.attempts) < 2 and not run.tables["batches"].num_rows:
        raise CannotTell("the run was not restarted")
    batches = data_passes.contents(run)
    s = series(run, "loss.train")
    epochs = epochs_of(run)
    length = epochs.steps if epochs else None
    if len(run.attempts) == 1:
        again = resume_data.unannounced(batches, length)
        if again is not None:
            yield _finding(run, again, "From step {step} on, where no restart was logged, the run {text} ({how})")
        return
    named = {a for a, _ in batches}
    restarts = range(1, len(run.attempts))
    a_batch = s is not None and not plan.counts_epochs(run) and plan.unit(run) != "epoch"  # an epoch's mean is of no batch
    by_loss = [a for a in restarts if a not in named and a_batch][:MOST]
    for attempt in restarts:
        if attempt in named:
            found = resume_data.by_samples(batches, attempt, length)
        else:
            found = _by_numbers(run, attempt, length)
            if found is None and attempt in by_loss and s is not None:
                by = (s, attempt, len(by_loss), length)
                found = resume_loss.by_residuals(*by) or first_batches.again(*by)
        if found is not None:
            yield _finding(run, found, "After the restart at step {step} the run {text} ({how})")


def _by_numbers(run: Run, attempt: int, epoch: float | None) -> Change | None:
    """Where no ids are listed, but a number of each batch is logged: that it comes again says that the batch does, and nothing else."""
    for tag, batches in batch_numbers.numbered(run).items():
        found = resume_data.by_samples(batches, attempt, epoch)
        if found is not None and found.what == "repeated":
            return replace(found, how=f"by {tag}", share=None)
    return None


def _finding(run: Run, found: Change, words: str) -> Finding:
    s = series(run, "loss.train")
    logged = found.attempt < len(run.attempts)
    begin = run.attempts[found.attempt]["steps"][0] if logged else found.step
    end = run.attempts[-1 if not logged else found.attempt]["steps"][1]
    lower = resume_loss.dip(s, found.attempt) if s is not None and logged and found.what == "repeated" else None
    less, joins = (lower.share, lower.until) if lower else (None, None)
    facts = Facts(
        found.what, begin, found.offset, found.from_start, found.how, found.attempt, found.p, found.share, lower=less, joins=joins
    )
    lines = list(found.lines)
    if lower:
        lines.append(f"the loss is {lower.share:.1%} lower until step {lower.until}, where it joins the old curve")
    text = found.text
    if found.what == "repeated" and found.offset is not None:
        text = f"sees the data of step {max(begin - found.offset, 0)} and on again"  # the manifest may begin a little later
    proven = found.what != "reshuffled" or bool(found.share)
    shown = (evidence.text("the data after the restart", lines),) if lines else ()
    title = words.format(step=begin, text=text, how=found.how)
    key = f"{begin}-attempt{found.attempt}" if found.attempt > 1 else begin
    return evidence.found(facts, title, (begin, end), "warning" if proven else "info", *shown, key=key)


def smallest_effect(run: Run) -> str:
    if run.tables["batches"].num_rows:
        return f"{resume_data.IN_A_ROW} batches in a row, or {resume_data.AGAIN:.0%} of samples that come again"
    return f"{resume_loss.VALUES} values whose ups and downs agree, or {first_batches.LEAST} that agree with the first of the run"
