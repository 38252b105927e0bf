"""Bad data pocket

What it is
    A contiguous stretch of bad batches, usually a shard, that ends.

How it is weighed
    For it: a loss that stands on a higher level for a stretch, begins and ends at once, and is back where it was; a calm rate;
    a shard or source that several stretches share. Against it: a single high value (a bad batch), a decay back to the level (the model was hit), no end (a lasting change).

What settles it
    Reading the samples of the stretch; replaying with them left out.

Folklore
    "Loss spikes mean a bad data pocket" (Bekman): look at what the loader read there.
"""

from __future__ import annotations

import numpy as np

from forensics.batches.enrichment import decibans
from forensics.batches.recorded import shard_ends
from forensics.case import Finding, Hypothesis
from forensics.detectors import divergence, loss_spike, lr_schedule, nonfinite, restart, spike_data
from forensics.ledger import GRAVE, Findings, Ledger, findings_of, span
from forensics.run.series import Ints, Series, series
from parsers.tables import Run

TITLE = "Pocket of bad data"
PRIOR = -6.0
EXPECTS = "counters:go_on samples:stretch rate:as_told tensors:moved raw_loss:there both_sides:later replay:batch third:back epsilon:back"
NEEDS_TO_SPEAK = ("grad.norm", "batch ids")
ARMS = ("skip",)
OUTCOMES = {
    "data": 10.0,
    "data: a stretch": 24.0,
    "skip: harmless": 3.0,
    "skip: again": -4.0,
    "samples: unlike": 6.0,
    "samples: alike": -3.0,
}
LEAST = 5  # values
NEAR = 3  # steps by which a stretch may miss the ends of the shard that it is
FLAT = 0.8  # share of a stretch above half its height that no recovery has


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    stretches = [f for f in findings_of(findings, loss_spike.Facts) if f.facts.values >= LEAST and _end(f.facts) is not None]
    if not stretches:
        return None
    best = max(stretches, key=lambda f: f.facts.noise_sigmas * f.facts.values**0.5)
    ledger = Ledger(PRIOR)
    _stretch(run, ledger, best)
    for f in findings_of(findings, spike_data.Common):
        if f.facts.what in ("shard", "source"):
            # 8 at most: the shard is proven as well as for a single batch, the stretch is weighed above
            ledger.add(decibans(f.facts.p, 8), f"{f.title}.", [f])
    _other_troubles(findings, ledger, best)
    if run.tables["batches"].num_rows:
        ledger.add(1, "The log says which samples were read there.")
    else:
        ledger.cannot_tell("no file maps steps to samples.")
    steps = f"steps {best.facts.start} to {_end(best.facts)}"
    return ledger.hypothesis(
        __name__,
        steps=span([best]),
        settle=f"Replay {steps} with other data.",
        interventions=[
            f"Read the samples of {steps}: which shard, which source?",
            "Leave the shard out of the next epoch.",
            "Go back to the checkpoint before it only if the loss did not come back.",
        ],
    )


def _stretch(run: Run, ledger: Ledger, best: Finding[loss_spike.Facts]) -> None:
    flat, values, ends = _shape(run, best.facts)
    shard = shard_ends(run, best.facts.start)
    if shard and abs(shard[1] - best.facts.start) <= 1 and shard[2] - shard[1] >= LEAST:
        ledger.add(13, f"It begins with the very step at which shard {shard[0]} begins (steps {shard[1]} to {shard[2]}).", [best])
    if flat >= 0.5 or ends:
        text = f"The loss stays high for {values} values in a row instead of decaying to its old level."
        ledger.add(9 if ends or flat >= FLAT else 6, text, [best])
    else:
        ledger.add(-6, "The loss decays from a peak: the model was hit and recovers.", [best])
    if ends:
        ledger.add(6, "It comes down from one value to the next, as when a shard ends.", [best])


def _other_troubles(findings: Findings, ledger: Ledger, best: Finding[loss_spike.Facts]) -> None:
    start, end = best.facts.start, _end(best.facts) or 0
    graver: list[Finding] = [f for f in findings_of(findings, divergence.Facts) if not start <= (f.first_step or 0) <= end]
    graver += findings_of(findings, nonfinite.Facts, severity=["critical"])
    if graver:
        ledger.add(-10, "There is a more serious symptom, which no stretch of data explains.", graver[:2])
    if moved := findings_of(findings, lr_schedule.Facts):
        ledger.add(-10, "The learning rate moved as well.", moved[:1])
    restarts = findings_of(findings, restart.Facts)
    if any(abs((r.first_step or 0) - start) <= 5 for r in restarts):
        ledger.add(-8, "The run was restarted there.", restarts[:1])
    grave = [f for f in findings_of(findings, loss_spike.Facts, severity=GRAVE) if f.id != best.id]
    if len(grave) >= 3:
        ledger.add(-6, f"{len(grave)} more spikes stand beside it.", grave[:3])


def _end(f: loss_spike.Facts) -> int | None:
    """The step at which a stretch is over: back at the old level, or left at once for a level that is a little higher."""
    return f.end if f.end is not None else f.falls_at


def _rows(s: Series, f: loss_spike.Facts, stop: int) -> Ints:
    return np.flatnonzero((s.attempt == f.attempt) & (s.step >= f.start) & (s.step < stop))


def _shape(run: Run, f: loss_spike.Facts) -> tuple[float, int, bool]:
    """(share of the stretch that stands above half its height, its values, whether it ends at once)."""
    s = series(run, f.metric)
    if s is None:
        return 0.0, 0, False
    x = s.value[_rows(s, f, _end(f) or 0)] - f.level
    height = float(np.percentile(x, 80)) if len(x) else 0.0
    if height <= 0:
        return 0.0, len(x), False
    last = x[-min(3, len(x)) :]
    return float((x > 0.5 * height).mean()), len(x), bool(np.median(last) > 0.5 * height)


def blamed(run: Run, f: Finding) -> list[tuple[int, int]]:
    """(attempt, step) of the batches that a finding points at."""
    if not isinstance(f.facts, loss_spike.Facts):
        return []
    start, end = f.facts.start, _last_high(run, f.facts)
    shard = shard_ends(run, start)
    if shard is not None and abs(shard[1] - start) <= NEAR and abs(shard[2] - end) <= NEAR + (end - start) // 10:
        start, end = shard[1], shard[2]  # the stretch is that shard
    return [(f.facts.attempt, s) for s in range(start, end + 1)]


def _last_high(run: Run, f: loss_spike.Facts) -> int:
    """The last step of a stretch above half its height: what comes then is the recovery, whose batches are sound."""
    s = series(run, f.metric)
    last = f.end - 1 if f.end else f.peak
    if s is None:
        return last
    rows = _rows(s, f, last + 1)
    above = s.value[rows] - f.level
    high = rows[above > 0.5 * np.percentile(above, 80)] if len(rows) else rows
    return int(s.step[high[-1]]) if len(high) else last
