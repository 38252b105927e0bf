"""Learning rate too high

What it is
    A rate above what the model, batch and optimizer bear: it diverges, bounces, or gets stuck on a high level.

How it is weighed
    For it: divergence, or several spikes, while the rate is at or near its peak; a gradient norm that grows with them; a
    loss above its first value. Against it: a rate that was falling for long, a single spike in a calm run, clipping that
    would have tamed it.

What settles it
    The same steps at a third of the rate.

Folklore
    "LR too high / no warmup: most common cause." Halving it is the cheapest experiment there is.
"""

from __future__ import annotations

from collections.abc import Sequence

from forensics import settings
from forensics.case import Finding, Hypothesis
from forensics.detectors import lr_schedule
from forensics.ledger import Ledger, of, span
from forensics.series import series
from parsers.tables import Run

TITLE = "Learning rate too high"
PRIOR = -4.0
ADAM_HIGH, SGD_HIGH = 1e-2, 1.0


def weigh(run: Run, findings: Sequence[Finding]) -> Hypothesis | None:
    diverged, spikes = of(findings, "divergence"), of(findings, "loss_spike", severity=["warning", "critical"])
    stuck, dead = of(findings, "plateau", severity=["warning"]), of(findings, "nonfinite", severity=["critical"])
    if not (diverged or spikes or stuck or dead):
        return None
    ledger = Ledger(PRIOR)
    shape = lr_schedule.shape(run)
    if diverged:
        ledger.add(8, "The loss turns round and climbs.", diverged)
        if diverged[0].facts["final"] > diverged[0].facts["first"]:
            ledger.add(3, "It ends above its first value.", diverged)
    if len(spikes) >= 3:
        ledger.add(6, f"{len(spikes)} spikes: instability that keeps coming back.", spikes[:5])
    elif len(spikes) == 1 and not diverged:
        ledger.add(-6, "One spike in the whole run. A rate too high spikes again and again.", spikes)
    first = min((f.first_step or 0 for f in [*diverged, *spikes, *dead]), default=None)
    if shape is None:
        ledger.cannot_tell("the learning rate was not logged.")
    elif first is not None:
        _rate_there(run, ledger, first, shape)
    rate = shape.peak if shape else settings.number(run, "lr")
    optimizer = str(getattr(settings.setting(run, "optimizer"), "value", "")).lower()
    limit = SGD_HIGH if "sgd" in optimizer else ADAM_HIGH
    if rate is not None and rate >= limit:
        ledger.add(6, f"The peak rate of {rate:.3g} is far above what this kind of optimizer usually bears.", [])
    elif rate is not None and rate < limit / 30 and optimizer:
        ledger.add(-4, f"The peak rate of {rate:.3g} is ordinary.", [])
    if dead and not diverged and (dead[0].facts.get("grad_ratio") or 0) < 3:
        ledger.add(-6, "The values were calm until they became NaN.", dead)
    if of(findings, "lr_schedule"):
        ledger.add(-5, "The rate left its schedule: that is a cause of its own.", of(findings, "lr_schedule"))
    if stuck and not diverged:
        ledger.add(2, "The loss is stuck high from the beginning on.", stuck)
    return ledger.hypothesis(
        __name__, TITLE, steps=span([*diverged, *spikes, *dead, *stuck]), settle="Run the first steps again at a third of the rate.",
        interventions=["Look at the loss against the rate: does trouble begin where the rate peaks?", "Run it again at a third of the peak rate.",
                       "Lengthen the warmup and clip the gradient norm."],
    )  # fmt: skip


def _rate_there(run: Run, ledger: Ledger, step: int, shape: lr_schedule.Shape) -> None:
    s = series(run, "lr")
    assert s is not None
    before = s.value[s.step <= step]
    share = float(before[-1]) / shape.peak if len(before) else 1.0
    if share >= 0.7:
        ledger.add(4, f"Trouble begins at step {step}, with the rate at {share:.0%} of its peak.")
    elif shape.peak_step < step:
        ledger.add(-6, f"Trouble begins at step {step}, when the rate had fallen to {share:.0%} of its peak.")
