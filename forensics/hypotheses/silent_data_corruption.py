"""Silent data corruption

What it is
    Hardware computed or stored something wrong, once, without an error: a flipped bit in a weight or an activation.

How it is weighed
    For it: one absurd value in a checkpoint where all else is sane; errors of the hardware in the log; a spike that a replay
    does not show. Against it: nothing in the log tells it from a bad batch, so without such a sign it stays far behind.

What settles it
    Replaying the step: the same result again means it was not the hardware.

Folklore
    Megatron's rerun machine exists for this: transient, persistent, or correct after all.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.case import Finding, Hypothesis
from forensics.ledger import Ledger, of, span
from forensics.lives import events
from forensics.series import series
from parsers.tables import Run

TITLE = "Silent data corruption (hardware)"
PRIOR = -11.0


def weigh(run: Run, findings: Sequence[Finding]) -> Hypothesis | None:
    absurd = [f for f in findings if f.facts.get("absurd")]
    errors = events(run, "hardware")
    spikes = of(findings, "loss_spike", severity=["warning", "critical"])
    if not absurd and not errors and not spikes:
        return None
    ledger = Ledger(PRIOR)
    if absurd:
        ledger.add(26, f"{absurd[0].title}.", absurd)
    if errors:
        ledger.add(12, f"The log speaks of faulty hardware: {errors[0]['text'][:100]}", [])
    if not absurd and not run.tables["checkpoints"].num_rows:
        ledger.cannot_tell("no checkpoint lies here whose weights could be looked at.")
    if spikes and spikes[0].facts["class"] == "fast" and len(spikes) == 1:
        ledger.add(3, "One sudden spike, which a wrong activation makes as well as a bad batch.", spikes)
    if series(run, "grad.norm") is None:
        ledger.cannot_tell("the gradient norm was not logged.")
    return ledger.hypothesis(
        __name__,
        TITLE,
        steps=span([*absurd, *spikes]),
        settle="Replay the step on another device: a spike that does not come back was the hardware.",
        interventions=[
            "Look at ECC and Xid counters of the node of that time.",
            "Go back to the checkpoint before and run a burn-in test on the device.",
        ],
    )
