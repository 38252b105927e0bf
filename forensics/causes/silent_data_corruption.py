"""Silent data corruption

What it is
    Hardware computed or stored something wrong, once, without an error: a flipped bit in a weight or an activation.

How it is weighed
    For it: one absurd value in a checkpoint where all else is sane; errors of the hardware in the log; one rank that leaves
    the others at once; a gradient norm that overflows out of a calm state, outside half precision; a spike that a replay does not show. Against it: nothing in the log tells it from a bad batch, so without such a sign it stays far behind.

What settles it
    Replaying the step: the same result again means it was not the hardware.

Folklore
    Megatron's rerun machine exists for this: transient, persistent, or correct after all.
"""

from __future__ import annotations

import re

from forensics.case import Finding, Hypothesis
from forensics.detectors import checkpoint_damage, loss_spike, lr_schedule, rank_disagreement, restart
from forensics.ledger import GRAVE, Findings, Ledger, findings_of, span
from forensics.many_runs.baseline import Beside, Said
from forensics.run import settings
from forensics.run.endings import events
from forensics.run.series import series
from forensics.signs.before_nan import overflowed
from forensics.signs.jumps import state_hit
from parsers.tables import Run

TITLE = "Silent data corruption (hardware)"
PRIOR = -11.0
SETTLE = "Replay the step on another device: a spike that does not come back was the hardware."
INTERVENTIONS = (
    "Look at ECC and Xid counters of the node of that time.",
    "Go back to the checkpoint before and run a burn-in test on the device.",
)
EXPECTS = "samples:sound rate:as_told tensors:absurd raw_loss:there old_evaluation:same both_sides:neither replay:gone seeds:some"
NEEDS_TO_SPEAK = ("grad.norm", "checkpoints")
ARMS = ("device", "kernels")
OUTCOMES = {"transient hardware": 34.0, "device: again": -10.0, "device: harmless": 10.0, "kernels: again": -6.0}
_KERNEL = re.compile(r"(?i)illegal memory access|launch failure|misaligned address")  # a kernel's bug more often than the chip's
CALM = 3.0  # times the usual gradient norm


def _near_restart(findings: Findings, hit: Finding[loss_spike.Facts]) -> bool:
    return any(0 <= hit.facts.start - (r.first_step or 0) <= 10 for r in findings_of(findings, restart.Facts))


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    absurd = [f for f in findings_of(findings, checkpoint_damage.Facts) if f.facts.absurd]
    errors = [e for e in events(run, "hardware") if not _KERNEL.search(e["text"])]
    spikes = findings_of(findings, loss_spike.Facts, severity=GRAVE)
    alone = [
        f
        for f in findings_of(findings, rank_disagreement.Apart)
        if f.facts.pattern in ("jump", "parts") and f.facts.rank is not None and not f.facts.metric.startswith("time.")
    ]
    over = overflowed(findings)
    if over is not None:
        ratio = over.facts.grad_ratio
        calm = ratio is not None and ratio <= CALM
        over = over if calm and not over.facts.at_start and settings.precision(run) != "fp16" else None
    if not absurd and not errors and not spikes and not alone and not over:
        return None
    ledger = Ledger(PRIOR)
    if absurd:
        ledger.add(26, f"{absurd[0].title}.", absurd)
    if errors:
        ledger.add(12, f"The log speaks of faulty hardware: {errors[0]['text'][:100]}", [])
    if alone:
        ledger.add(9, f"One rank alone leaves the others at once: {alone[0].title}.", alone[:1])
    if not absurd and not run.tables["checkpoints"].num_rows:
        ledger.cannot_tell("there is no checkpoint whose weights could be read.")
    if spikes and spikes[0].facts.class_ == "fast" and len(spikes) == 1:
        ledger.add(3, "One sudden spike, which a wrong activation makes as well as a bad batch.", spikes)
    hit = state_hit(run, spikes)
    if hit and not findings_of(findings, lr_schedule.Facts) and not _near_restart(findings, hit):
        ledger.add(
            10, "From one step to the next the loss jumps above its value before training, and the model starts learning over.", [hit]
        )
    if over is not None:
        weight = 4 if over.facts.recovered else 14
        ledger.add(
            weight, "The gradient norm overflows out of a calm state while the loss stays finite: one number became huge at once.", [over]
        )
    if series(run, "grad.norm") is None:
        ledger.cannot_tell("the gradient norm was not logged.")
    return ledger.hypothesis(__name__, steps=span([*absurd, *spikes, *alone]))


def baseline(b: Beside, findings: Findings) -> Said:
    differs = [d for d in b.differs if d["kind"] not in ("name or place", "environment") and d["suspicion"] >= 10]
    if b.parted is None or b.parted.equal < 10 or b.parted.first_unequal is None or differs:
        return None
    equal, other = b.parted.last_equal, b.parted.first_unequal
    return 7.0, f"One config, equal values to step {equal}, other ones from step {other}: the machine computed something else."
