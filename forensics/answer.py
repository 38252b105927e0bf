"""The verdict and the one sentence at the top of the page, which must not say more than the evidence does."""

from __future__ import annotations

from collections.abc import Sequence

from forensics.case import Check, Finding, Hypothesis
from forensics.lives import status
from parsers.tables import Run

MATTER = ("loss_spike", "nonfinite", "divergence")  # without these a run cannot be called healthy
GRAVE = ("critical", "warning")


def verdict(run: Run, findings: Sequence[Finding], checks: Sequence[Check]) -> str:
    """unhealthy: a finding of severity warning or worse stands; healthy: what matters ran and is clear; else inconclusive."""
    if any(f.severity in GRAVE for f in findings):
        return "unhealthy"
    outcome = {c.id: c.status for c in checks}
    if all(outcome.get(m) in ("clear", "fired") for m in MATTER):
        return "healthy"
    return "inconclusive"


def word(probability: float) -> str:
    """Words before numbers: how sure one may sound."""
    for least, said in ((0.95, "almost certainly"), (0.8, "likely"), (0.55, "more likely than not")):
        if probability >= least:
            return said
    return "possibly"


def sentence(
    run: Run, said: str, findings: Sequence[Finding], hypotheses: Sequence[Hypothesis], checks: Sequence[Check]
) -> str:
    if said == "healthy":
        clear = sum(c.status == "clear" for c in checks)
        end = {"finished": "The run finished", "running": "The run is still going"}.get(
            status(run), "The log ends without a sign of trouble"
        )
        return f"{end}, and nothing looks wrong: {clear} checks are clear."
    if said == "inconclusive":
        missing = [c.note for c in checks if c.id in MATTER and c.status in ("cannot_tell", "error")]
        return f"Cannot tell whether this run is healthy: {missing[0] if missing else 'too little was logged'}."
    return explained(findings, hypotheses)


def explained(findings: Sequence[Finding], hypotheses: Sequence[Hypothesis]) -> str:
    """What happened and the likeliest cause, in the words that its probability allows."""
    symptom = main(findings)
    best = hypotheses[0] if hypotheses else None
    happened = symptom.title if symptom else "Something went wrong"
    if best is None or best.id == "unknown" or best.probability < 0.4:
        rivals = [h.title.lower() for h in hypotheses if h.id != "unknown"][:2]
        maybe = f" The nearest candidates: {' or '.join(rivals)}." if rivals else ""
        return f"{happened}. The cause is open.{maybe}"
    return f"{happened}. Cause, {word(best.probability)}: {best.title[0].lower() + best.title[1:]}."


def main(findings: Sequence[Finding]) -> Finding | None:
    """The finding to lead with: the gravest, then the earliest."""
    order = {"critical": 0, "warning": 1, "info": 2}
    return min(findings, key=lambda f: (order[f.severity], f.first_step is None, f.first_step or 0), default=None)
