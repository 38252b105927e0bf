"""Optimizer state lost

What it is
    A restart from weights without the moments of the optimizer: the first updates are wild, the loss bumps and decays.

How it is weighed
    For it: a bump right after a restart that decays over tens to hundreds of steps; a restart without an optimizer file in
    the checkpoint; an optimizer whose own count of steps begins at the restart. Against it: a count that goes on over the
    restart; a loss that goes on where it stood; a rate that was reset, too; data that repeats (lower, not higher).

What settles it
    Resuming once with the moments and once without, for as many steps as the bump lasted.

Folklore
    "Training resumes with increased loss despite checkpoint loading" (transformers#33336, #9099).
"""

from __future__ import annotations

from forensics.case import Finding, Hypothesis
from forensics.checkpoints import run_saves
from forensics.checkpoints.age import counters
from forensics.detectors import checkpoint_state, loss_spike, lr_schedule, restart, resume_break
from forensics.ledger import Findings, Ledger, findings_of, span
from parsers.tables import Run

TITLE = "Optimizer state lost at the restart"
PRIOR = -5.0
SETTLE = "Resume once with and once without the optimizer's state, and compare the first steps."
INTERVENTIONS = (
    "Check that the resume path loads optimizer, scheduler and scaler, and fails loudly when one is missing.",
    "Go back to the checkpoint and resume with its moments; else warm the rate up again.",
)
EXPECTS = "configs:same counters:optimizer samples:sound raw_loss:there replay:any"
NEEDS_TO_SPEAK = ("lr", "checkpoints")
ARMS = ("moments as saved", "moments reset", "warmup again")
OUTCOMES = {"warmup again": 4.0, "moments reset": 4.0, "moments lost": 26.0}


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    breaks = findings_of(findings, resume_break.Facts)
    restarts = findings_of(findings, restart.Facts)
    spikes = [f for f in findings_of(findings, loss_spike.Facts) if any(0 <= f.facts.start - (r.first_step or 0) <= 10 for r in restarts)]
    state = findings_of(findings, checkpoint_state.Facts)
    anew = [f for f in state if f.facts.what == "optimizer_anew"]
    if not anew and (not restarts or not (breaks or spikes)):
        return None
    ledger = Ledger(PRIOR)
    up = [f for f in breaks if f.facts.up]
    if up:
        ledger.add(13, f"The loss stands {up[0].facts.height:.1%} higher after the restart.", up)
        if up[0].facts.length:
            ledger.add(3, f"It decays within {up[0].facts.length} steps, as fresh moments settle.", up)
    elif breaks:
        ledger.add(-10, "The loss is lower after the restart, not higher.", breaks)
    if spikes and not up:
        ledger.add(7, "The loss spikes within ten steps of the restart.", spikes)
    reset = [f for f in findings_of(findings, lr_schedule.Facts) if f.facts.at_resume]
    if reset:
        ledger.add(-9, "The learning rate was reset there, too, which alone can do this.", reset)
    if anew:
        ledger.add(20, f"{anew[0].title}.", anew)
    else:
        _weigh_checkpoints(run, ledger, state, restarts)
    first = up or breaks or spikes or anew
    return ledger.hypothesis(__name__, steps=span(first))


def _weigh_checkpoints(run: Run, ledger: Ledger, state: list[Finding], restarts: list[Finding]) -> None:
    """What checkpoints tell where no count of theirs falls back."""
    begins = [r.facts.from_ for r in restarts]
    counted = [(c.step, counters(c).optimizer) for c in run_saves.of_run(run) if c.step is not None]
    kept = [s for s, n in counted if n and any(s >= b + 5 for b in begins) and abs(n - s) <= 0.02 * s + 2]
    bare = [f for f in state if f.facts.what == "optimizer_missing" and f.facts.resumed]
    empty = [f for f in state if f.facts.what == "optimizer_empty"]
    kinds = set(run.tables["checkpoints"]["kind"].to_pylist())
    if kept and not bare:
        told = f"in the checkpoint of step {kept[-1]} it has counted about as many"
        ledger.add(-20, f"The optimizer's step count continues across the restart: {told}.", [])
    elif bare or empty:
        ledger.add(9, f"{(bare or empty)[0].title}.", bare or empty)
    elif kinds and "weights" in kinds and not kinds & {"optimizer", "full"}:
        ledger.add(7, "The checkpoints in the folder hold weights and no optimizer.", [])
    elif not kinds:
        ledger.cannot_tell("there is no checkpoint in the folder.")
