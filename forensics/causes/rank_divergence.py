"""Rank divergence

What it is
    Replicas that should share their weights train apart: gradients are no longer averaged (no_sync left on, the wrapper
    bypassed, a branch that some ranks take), weights never broadcast at the start, a seed that differs where it must not.

How it is weighed
    For it: numbers that an all-reduce made equal on all ranks and that differ from some step on; a spread between ranks that
    grows; one rank that leaves the others. Against it: signs of faulty hardware, which does that to one rank as well.

What settles it
    A checksum of the weights on every rank after one step.

Folklore
    BLOOM-176B's layer norms were out of step between tensor-parallel ranks for weeks, through a bug in clipping; the loss did
    not show it (BigScience chronicles). The checkpoint is that of rank 0 alone.
"""

from __future__ import annotations

from forensics.case import Hypothesis
from forensics.detectors import checkpoint_damage, rank_disagreement
from forensics.ledger import Findings, Ledger, findings_of, span
from forensics.run.endings import events
from parsers.tables import Run

TITLE = "Ranks train apart: gradients or weights are not shared any more"
PRIOR = -7.0
SETTLE = "Compare a checksum of the weights of all ranks after one step: it must be equal where weights are replicated."
ARMS = ("device", "kernels")
WEIGHTS = {"parts": 16, "drift": 11, "jump": 7, "apart": 3}


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    found = [
        f for f in findings_of(findings, rank_disagreement.Apart) if f.facts.pattern in WEIGHTS and not f.facts.metric.startswith("time.")
    ]
    if not found:
        return None
    ledger = Ledger(PRIOR)
    best = max(found, key=lambda f: WEIGHTS[f.facts.pattern])
    ledger.add(WEIGHTS[best.facts.pattern], f"{best.title}.", [best])
    others = [f for f in found if f is not best and f.severity != "info"]
    if others:
        ledger.add(3, f"{len(others)} other {'metrics say' if len(others) > 1 else 'metric says'} the same.", others)
    alone = best.facts.rank is not None
    if best.facts.pattern == "parts" and not alone and best.facts.ranks > 2:
        ledger.add(3, "All ranks went their own ways at once: a setting or a branch does that, a faulty device does not.", [best])
    if alone and best.facts.pattern in ("parts", "jump"):
        ledger.add(-2, f"Only rank {best.facts.rank} left: a fault of its device does that as well.", [best])
    absurd = [f for f in findings_of(findings, checkpoint_damage.Facts) if f.facts.absurd]
    if events(run, "hardware") or absurd:
        ledger.add(-8, "There are signs of faulty hardware.", absurd)
    grave = [f for f in findings if f.severity == "critical"]
    if grave:
        ledger.add(-5, "There is a more serious symptom.", grave[:3])
    return ledger.hypothesis(
        __name__,
        steps=span(found),
        interventions=[
            f"Look at what the program does at step {best.facts.step}: no_sync, an unwrapped module, a branch on rank or data.",
            "Go back to the last checkpoint before it and broadcast the weights from rank 0 at the start.",
            "Log a checksum of the weights by rank every some hundred steps.",
        ],
    )
