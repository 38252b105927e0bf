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
from collections.abc import Sequence

import numpy as np

from forensics.case import Finding, Hypothesis
from forensics.ledger import Ledger, of, overflowed, span
from forensics.run import settings
from forensics.run.endings import events
from forensics.run.series import series
from parsers.tables import Run

TITLE = "Silent data corruption (hardware)"
PRIOR = -11.0
_KERNEL = re.compile(r"(?i)illegal memory access|launch failure|misaligned address")  # a kernel's bug more often than the chip's
CALM = 3.0  # times the usual gradient norm


def state_hit(run: Run, spikes: Sequence[Finding]) -> Finding | None:
    """A jump within two values, out of a trained state, to above the first loss, which takes long to decay: weights were hit.

    Data from another world cost a model about what guessing costs; only a state that is confidently wrong costs more.
    """
    s = series(run, "loss.train")
    for f in spikes:
        if s is None or f.facts["class"] not in ("non_recovering", "slow") or f.facts["top"] != f.facts["top"]:
            continue
        first = float(np.median(s.value[:3]))
        at_once = f.facts["peak"] - f.facts["start"] <= 2 * s.interval
        if at_once and f.facts["level"] < 0.5 * first and f.facts["top"] > 1.1 * first:
            return f
    return None


def _near_restart(findings: Sequence[Finding], hit: Finding) -> bool:
    return any(0 <= hit.facts["start"] - (r.first_step or 0) <= 10 for r in of(findings, "restart"))


def weigh(run: Run, findings: Sequence[Finding]) -> Hypothesis | None:
    absurd = [f for f in findings if f.facts.get("absurd")]
    errors = [e for e in events(run, "hardware") if not _KERNEL.search(e["text"])]
    spikes = of(findings, "loss_spike", severity=["warning", "critical"])
    alone = [
        f
        for f in of(findings, "rank_disagreement")
        if f.facts["pattern"] in ("jump", "parts") and f.facts["rank"] is not None and not f.facts["metric"].startswith("time.")
    ]
    over = overflowed(findings)
    if over is not None and (settings.precision(run) == "fp16" or over.facts["at_start"] or over.facts.get("grad_ratio", 9) > CALM):
        over = None
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
    if spikes and spikes[0].facts["class"] == "fast" and len(spikes) == 1:
        ledger.add(3, "One sudden spike, which a wrong activation makes as well as a bad batch.", spikes)
    hit = state_hit(run, spikes)
    if hit and not of(findings, "lr_schedule") and not _near_restart(findings, hit):
        ledger.add(
            10, "From one step to the next the loss jumps above its value before training, and the model starts learning over.", [hit]
        )
    if over is not None:
        weight = 4 if over.facts["recovered"] else 14
        ledger.add(
            weight, "The gradient norm overflows out of a calm state while the loss stays finite: one number became huge at once.", [over]
        )
    if series(run, "grad.norm") is None:
        ledger.cannot_tell("the gradient norm was not logged.")
    return ledger.hypothesis(
        __name__,
        TITLE,
        steps=span([*absurd, *spikes, *alone]),
        settle="Replay the step on another device: a spike that does not come back was the hardware.",
        interventions=[
            "Look at ECC and Xid counters of the node of that time.",
            "Go back to the checkpoint before and run a burn-in test on the device.",
        ],
    )
