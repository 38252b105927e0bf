"""Half-precision overflow

What it is
    Values beyond 65504 in fp16: the scaler halves its scale again and again, skips steps, and the training starves or dies.

How it is weighed
    For it: a collapsing loss scale, dense overflows, fp16 in the config. Against it: bf16 or fp32 in the config, a loss
    that became NaN while the scale was calm. Now and then a skipped step is healthy and weighs nothing.

What settles it
    The same steps in bf16 or fp32.

Folklore
    BLOOM's 104B runs died in fp16; the 176B run in bf16 finished.
"""

from __future__ import annotations

from forensics.case import Hypothesis
from forensics.detectors import loss_scale, nonfinite
from forensics.ledger import Findings, Ledger, findings_of, span
from forensics.many_runs.baseline import Beside, Said
from forensics.run import settings
from forensics.run.endings import events
from forensics.run.series import series
from parsers.tables import Run

TITLE = "Half-precision (fp16) overflow"
PRIOR = -6.0
SETTLE = "Replay the first skipped steps in bf16 or fp32."
INTERVENTIONS = (
    "Run on in bf16 where the hardware has it.",
    "Look for the layer whose activations grow; keep it in fp32.",
    "Lower the rate or clip harder: overflow often follows growing weights.",
)
EXPECTS = "samples:sound raw_loss:there replay:any clip:back fp32:finite"
NEEDS_TO_SPEAK = ("loss_scale",)
OUTCOMES = {"numerics: low precision": 24.0}


def weigh(run: Run, findings: Findings) -> Hypothesis | None:
    scale, dead = findings_of(findings, loss_scale.Facts), findings_of(findings, nonfinite.Facts)
    precision = settings.precision(run)
    if not scale and not (dead and precision == "fp16") and not (dead and series(run, "loss_scale")):
        return None
    ledger = Ledger(PRIOR)
    if scale:
        facts = scale[0].facts
        if facts.collapsed:
            ledger.add(16, f"The loss scale falls from {facts.top:g} to {facts.low:g}.", scale)
        if facts.share >= 0.05:
            ledger.add(8, f"{facts.share:.0%} of the steps were skipped for overflow.", scale)
    elif _static(run):
        ledger.add(9, "The loss scale is static: it cannot give way to an overflow.", [])
    elif series(run, "loss_scale") is not None:
        ledger.add(-6, "The loss scale behaves as a healthy one does.", [])
    elif events(run, "overflow"):
        ledger.add(3, f"The log speaks of overflow {len(events(run, 'overflow'))} times.", [])
    else:
        ledger.cannot_tell("the loss scale was not logged.")
    # infinite gradients are how a dynamic scaler searches: where its scale holds and no loss was hurt they say nothing
    routine = not scale and series(run, "loss_scale") is not None and not _static(run)
    harmed = bool(dead) and not (routine and all(f.severity == "info" for f in dead))
    if precision == "fp16":
        ledger.add(
            8 if harmed else 2 if routine else 5,
            "Config asks for fp16" + (", and values overflow to infinity or NaN." if harmed else "."),
            dead[:1],
        )
    elif precision in ("bf16", "fp32"):
        ledger.add(-20, f"Config asks for {precision}, which has no loss scale to overflow.", [])
    else:
        ledger.cannot_tell("config does not say which precision was used.")
    if dead and dead[0].severity == "critical":
        ledger.add(2, "Values become NaN.", dead[:1])
    return ledger.hypothesis(__name__, steps=span([*scale, *dead]))


def _static(run: Run) -> bool:
    """A loss scale above 1 that never moves."""
    s = series(run, "loss_scale")
    return s is not None and len(s) > 5 and float(s.value[0]) > 1 and bool((s.value == s.value[0]).all())


def baseline(b: Beside, findings: Findings) -> Said:
    here, there = settings.precision(b.run), settings.precision(b.base)
    if here == "fp16" and there not in (None, "fp16"):
        return 6.0, f"The baseline runs in {there}, this one in fp16."
    return (-4.0, "The baseline runs in fp16, too.") if here == there == "fp16" else None
