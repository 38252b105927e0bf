"""A scheduler that watches an evaluation (ReduceLROnPlateau): whether it cuts the rate where the evaluation stands still."""

from __future__ import annotations

import numpy as np

from forensics.run import endings
from forensics.run.series import Series, series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen

SUBJECT = "rate_path"
EFFECTS = {"rate_cut_while_improving": "lr"}  # a symptom of its own, for which there is no detector
FIRST = 2  # bound: cuts; one may come at the first evaluation that is better again
GONE, EARLY = 0.01, 0.6  # unit: as a schedule ends early (forensics.detectors.schedule_length): of the peak rate, of the run
BETTER = 0.01  # bound: a hundred times the 1e-4 that PyTorch and Keras take for standing still


def rate_cut_while_improving(s: Symptoms) -> Sign:
    """A scheduler that is to cut the rate where an evaluation stands still cut it at the best evaluations so far, down to nothing long before the end
    of the run, or where none of the evaluations stood still: it watches a metric in the wrong direction."""
    cuts = sorted({e["step"] for e in endings.events(s.run, "rate_cut") if e["step"] is not None})
    if not cuts:
        return does_not_arise("no line tells of a scheduler that watches an evaluation.")
    watched = [m for name in ("loss.eval", "acc.eval", "score.eval") if (m := series(s.run, name)) is not None and m.usable.sum() > FIRST]
    rate = series(s.run, "lr")
    if not watched or rate is None or len(cuts) < FIRST:
        return cannot_tell("fewer than two such cuts, no evaluation or no rate was logged.")
    step, x = rate.step[rate.usable], rate.value[rate.usable]
    low = np.flatnonzero(x <= GONE * x.max(initial=0.0))
    moved = all(_best(m, cut, BETTER) for m in watched for cut in cuts[:FIRST])
    told = f"The log tells of {len(cuts)} cuts of the rate by a scheduler that watches an evaluation"
    if not len(low) or (step[low[0]] > EARLY * step[-1] and not moved):
        return absent(f"{told}; in the first {EARLY:.0%} of the run the rate does not come below {GONE:.0%} of its peak.")
    for m in watched:
        if all(_best(m, cut) for cut in cuts[:FIRST]):
            text = f"The scheduler that watches an evaluation cuts the rate where {m.tag} is at its best so far (steps {cuts[0]} and {cuts[1]})"
            return seen(f"{text}, and to {x[low[0]]:.2g} by step {step[low[0]]}.", where=rate.place(s.run, int(low[0])), first=cuts[0])
    return absent(f"{told}, and evaluations were better before.")


def _best(m: Series, cut: int, by: float = 0.0) -> bool:
    """Whether the evaluation that the scheduler looked at is the best so far, by a share of the one before. Its line comes before that of the evaluation."""
    step, x = m.step[m.usable], m.value[m.usable] * (1 if m.name == "loss.eval" else -1)
    at = int(np.searchsorted(step, cut, "right"))
    return 0 < at < len(x) and bool(x[at] < x[:at].min() - by * abs(x[:at].min()))
