"""What loss and gradient norm did before the first value that is not finite."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.case import Finding
from forensics.detectors import loss_scale, nonfinite
from forensics.ledger import Findings, Ledger, findings_of
from forensics.run import settings
from forensics.run.series import series
from parsers.tables import Run

EXPLODED = 5.0  # times the usual gradient norm
RISEN = 1.1  # times the highest of the fifty values before: more than scatter


def quiet(dead: Finding) -> bool:
    """Whether the loss kept to its ordinary scatter in the last values before it became NaN; False where it is not known."""
    facts = dead.facts
    ratio = facts.loss_ratio
    return ratio is not None and (ratio < 1.3 or facts.loss_before <= RISEN * facts.loss_highest)


def calm(run: Run, ledger: Ledger, dead: Sequence[Finding], findings: Findings, *, weight: float) -> None:
    """What the norm and the loss did just before the first NaN: calm speaks for a sample or a formula, a rise for an explosion."""
    facts = dead[0].facts
    ratio = facts.grad_ratio
    if ratio is None:
        why = "was not logged" if series(run, "grad.norm") is None else "has too few values before it"
        ledger.cannot_tell(f"the gradient norm {why}: whether an explosion led up to it is open.")
    elif ratio < EXPLODED:
        ledger.add(weight, f"The gradient norm was calm until then ({ratio:.1f} times its usual value at most).", dead)
    else:
        ledger.add(-10, f"The gradient norm had grown to {ratio:.3g} times its usual value before: an explosion, not a sample.", dead)
    rise = facts.loss_ratio
    if rise is not None:
        if quiet(dead[0]):
            ledger.add(weight / 2, "The loss was calm until then: no higher than its ordinary scatter.", dead)
        else:
            ledger.add(-5, f"The loss had risen to {rise:.2f} times its level before.", dead)
    if settings.precision(run) == "fp16" or findings_of(findings, loss_scale.Facts):
        ledger.add(-10, "Half precision is at work, which makes NaN of its own.", [])


def overflowed(findings: Findings) -> Finding[nonfinite.Facts] | None:
    """The gradient norm that became infinite, not NaN, while every logged loss is finite."""
    dead = findings_of(findings, nonfinite.Facts)
    if any(f.facts.metric != "grad.norm" for f in dead):
        return None
    return next((f for f in dead if f.facts.infinite), None)
