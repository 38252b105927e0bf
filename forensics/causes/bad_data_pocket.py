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

from collections.abc import Sequence

import numpy as np

from forensics.batches.enrichment import decibans
from forensics.batches.recorded import shard_ends
from forensics.case import Finding, Hypothesis
from forensics.ledger import Ledger, of, span
from forensics.run.series import series
from parsers.tables import Run

TITLE = "Pocket of bad data"
PRIOR = -6.0
LEAST = 5  # values
FLAT = 0.8  # share of a stretch above half its height that no recovery has


def weigh(run: Run, findings: Sequence[Finding]) -> Hypothesis | None:
    stretches = [f for f in of(findings, "loss_spike") if f.facts["values"] >= LEAST and _end(f) is not None]
    if not stretches:
        return None
    best = max(stretches, key=lambda f: f.facts["noise_sigmas"] * f.facts["values"] ** 0.5)
    end = _end(best)
    flat, values, ends = _shape(run, best)
    ledger = Ledger(PRIOR)
    shard = shard_ends(run, best.facts["start"])
    if shard and abs(shard[1] - best.facts["start"]) <= 1 and shard[2] - shard[1] >= LEAST:
        ledger.add(13, f"It begins with the very step at which shard {shard[0]} begins (steps {shard[1]} to {shard[2]}).", [best])
    if flat >= 0.5 or ends:
        ledger.add(
            9 if ends or flat >= FLAT else 6,
            f"The loss stays high for {values} values in a row instead of decaying to its old level.",
            [best],
        )
    else:
        ledger.add(-6, "The loss decays from a peak: the model was hit and recovers.", [best])
    if ends:
        ledger.add(6, "It comes down from one value to the next, as when a shard ends.", [best])
    for f in of(findings, "spike_data"):
        if f.facts["how"] == "shared" and f.facts["what"] in ("shard", "source"):
            # 8 at most: the shard is proven as well as for a single batch, the stretch is weighed above
            ledger.add(decibans(f.facts["p"], 8), f"{f.title}.", [f])
    graver = [f for f in of(findings, "divergence") if not best.facts["start"] <= (f.first_step or 0) <= (end or 0)]
    graver += of(findings, "nonfinite", severity=["critical"])
    if graver:
        ledger.add(-10, "There is a more serious symptom, which no stretch of data explains.", graver[:2])
    if of(findings, "lr_schedule"):
        ledger.add(-10, "The learning rate moved as well.", of(findings, "lr_schedule")[:1])
    if any(abs((r.first_step or 0) - best.facts["start"]) <= 5 for r in of(findings, "restart")):
        ledger.add(-8, "The run was restarted there.", of(findings, "restart")[:1])
    grave = [f for f in of(findings, "loss_spike", severity=["warning", "critical"]) if f.id != best.id]
    if len(grave) >= 3:
        ledger.add(-6, f"{len(grave)} more spikes stand beside it.", grave[:3])
    if run.tables["batches"].num_rows:
        ledger.add(1, "The log says which samples were read there.", [])
    else:
        ledger.cannot_tell("no file maps steps to samples.")
    return ledger.hypothesis(
        __name__,
        TITLE,
        steps=span([best]),
        settle=f"Replay steps {best.facts['start']} to {end} with other data.",
        interventions=[
            f"Read the samples of steps {best.facts['start']} to {end}: which shard, which source?",
            "Leave the shard out of the next epoch.",
            "Go back to the checkpoint before it only if the loss did not come back.",
        ],
    )


def _end(f: Finding) -> int | None:
    """The step at which a stretch is over: back at the old level, or left at once for a level that is a little higher."""
    end: int | None = f.facts["end"] if f.facts["end"] is not None else f.facts["falls_at"]
    return end


def _shape(run: Run, f: Finding) -> tuple[float, int, bool]:
    """(share of the stretch that stands above half its height, its values, whether it ends at once)."""
    s = series(run, f.facts["metric"])
    if s is None:
        return 0.0, 0, False
    rows = np.flatnonzero((s.attempt == f.facts["attempt"]) & (s.step >= f.facts["start"]) & (s.step < (_end(f) or 0)))
    x = s.value[rows] - f.facts["level"]
    height = float(np.percentile(x, 80)) if len(x) else 0.0
    if height <= 0:
        return 0.0, len(x), False
    last = x[-min(3, len(x)) :]
    return float((x > 0.5 * height).mean()), len(x), bool(np.median(last) > 0.5 * height)
