"""NaN from a sample

What it is
    One sample holds NaN, infinity, or something that makes the loss infinite; every other batch is fine at that state.

How it is weighed
    For it: the loss becomes NaN at once out of a calm run, with a calm gradient norm; it is finite again afterwards, or the
    weights were poisoned for good. Against it: an explosion of the norm or the loss that leads up to it, a loss scale at work, NaN from the first step on.

What settles it
    Replaying the step with this batch and with another one, from the same checkpoint.

Folklore
    "A NaN with a flat gradient norm points at a bad sample or at a layer's numerics."
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics.case import Finding, Hypothesis
from forensics.ledger import Ledger, of, span
from forensics.run import settings
from forensics.run.series import series
from parsers.tables import Run

TITLE = "NaN from a sample"
PRIOR = -7.0
EXPLODED = 5.0
RISEN = 1.1  # times the highest of the fifty values before: more than scatter


def weigh(run: Run, findings: Sequence[Finding]) -> Hypothesis | None:
    dead = [f for f in of(findings, "nonfinite") if f.facts["metric"].startswith("loss.train")]
    if not dead:
        return None
    facts = dead[0].facts
    ledger = Ledger(PRIOR)
    ledger.add(5, "The loss is NaN or infinite from one value to the next.", dead)
    calm(run, ledger, dead, findings, weight=6)
    if facts["recovered"] and facts["count"] <= 3:
        ledger.add(8, "The loss is finite again afterwards: the batch made it, the state did not.", dead)
    elif facts["recovered"]:
        ledger.add(3, f"{facts['count']} values are NaN, with finite ones between: some batches make it and others do not.", dead)
    else:
        ledger.add(1, "It stays NaN: the update that followed poisoned the weights.", dead)
    if facts["at_start"]:
        ledger.add(-8, "The very first value is NaN already.", dead)
    return ledger.hypothesis(
        __name__,
        TITLE,
        steps=span(dead),
        settle=f"Replay step {facts['first']} from the checkpoint before it, with its batch and with another.",
        interventions=[
            f"Check the samples of step {facts['first']} for NaN, empty sequences and labels out of range.",
            "Go back to the checkpoint before and leave the batch out.",
            "Skip updates whose gradient is not finite.",
        ],
    )


def quiet(dead: Finding) -> bool:
    """Whether the loss kept to its ordinary scatter in the last values before it became NaN; False where it is not known."""
    facts = dead.facts
    ratio = facts.get("loss_ratio")
    return ratio is not None and (ratio < 1.3 or facts["loss_before"] <= RISEN * facts["loss_highest"])


def calm(run: Run, ledger: Ledger, dead: Sequence[Finding], findings: Sequence[Finding], *, weight: float) -> None:
    """What the norm and the loss did just before the first NaN: calm speaks for a sample or a formula, a rise for an explosion."""
    facts = dead[0].facts
    ratio = facts.get("grad_ratio")
    if ratio is None:
        why = "was not logged" if series(run, "grad.norm") is None else "has too few values before it"
        ledger.cannot_tell(f"the gradient norm {why}: whether an explosion led up to it is open.")
    elif ratio < EXPLODED:
        ledger.add(weight, f"The gradient norm was calm until then ({ratio:.1f} times its usual value at most).", dead)
    else:
        ledger.add(-10, f"The gradient norm had grown to {ratio:.3g} times its usual value before: an explosion, not a sample.", dead)
    rise = facts.get("loss_ratio")
    if rise is not None:
        if quiet(dead[0]):
            ledger.add(weight / 2, "The loss was calm until then: no higher than its ordinary scatter.", dead)
        else:
            ledger.add(-5, f"The loss had risen to {rise:.2f} times its level before.", dead)
    if settings.precision(run) == "fp16" or of(findings, "loss_scale"):
        ledger.add(-10, "The run uses half precision, which alone can produce NaN.", [])
