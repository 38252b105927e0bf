"""What a network gives out: whether its units are all zero, and whether its predictions differ from input to input."""

from __future__ import annotations

import numpy as np

from forensics.detectors import plateau
from forensics.run import settings
from forensics.run.idle_units import shares_zero
from forensics.run.robust import median
from forensics.run.series import Floats, Series, parts, series
from forensics.signs.sign import Sign, Symptoms, absent, cannot_tell, does_not_arise, seen
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

ALL = 0.9995  # what is printed as 1.000
TENTH = 0.1  # of the run: longer than a warmup, within which a branch that begins at zero has left it
FLOAT = 1e-6  # of the error of the predictions: eight times the resolution of a 32-bit float (1.2e-7), which sums lose
MOST = 0.5  # unit: of the values
_SQUARED = lazy_re(r"(?i)(^|[^a-z])(r?mse|mean_squared_error|l2_?loss)([^a-z]|$)")


def units_all_zero(s: Symptoms) -> Sign:
    """The logged share of zero activations is one from the first value on, for a tenth of the run, or that of active units zero throughout: no unit
    passes a gradient."""
    active = [(p, p.value[p.usable]) for p in parts(s.run, "act.active") if p.usable.sum() >= plateau.LEAST_VALUES]
    if none := [p for p, x in active if not x.any()]:  # of a code, too: it may be sparse on purpose, and not empty
        text = f"No unit is active in any of the {len(none[0])} values ({none[0].tag})."
        return seen(text, where=none[0].place(s.run, 0), first=int(none[0].step[0]), last=int(none[0].step[-1]))
    shares = [z for z in shares_zero(s.run) if len(z) >= plateau.LEAST_VALUES]
    if not shares and (some := [(p, x) for p, x in active if x[0] > 0 < x[-1]]):
        p, x = some[0]
        return absent(f"Units are active: {p.tag} is {np.median(x):.3g} in the median.", where=p.place(s.run, 0))
    if not shares:
        return cannot_tell("neither the share of zero activations nor that of active units was logged.")
    told = [(int(np.argmin(np.append(z.value >= ALL, False))), z) for z in shares]
    n, z = max(told, key=lambda t: t[0] / len(t[1]))
    text = f"All units are zero in the first {n} of {len(z)} values ({z.tag})"
    if n >= max(TENTH * len(z), plateau.LEAST_VALUES):
        return seen(f"{text}.", where=z.place(s.run, 0), first=int(z.step[0]), last=int(z.step[n - 1]))
    return absent(f"{text}; the share is {np.median(z.value):.3g} in the median.", where=z.place(s.run, 0))


def predictions_constant(s: Symptoms) -> Sign:
    """The logged predictions do not differ from input to input, but for the rounding of floats: the network is cut off from its input."""
    spreads = [p for p in parts(s.run, "pred.std") if len(p) >= plateau.LEAST_VALUES]
    if not spreads:
        return cannot_tell("the spread of the predictions was not logged.")
    if settings.number(s.run, "batch_size") == 1:
        return does_not_arise("a batch holds one sample, whose prediction has no spread.")
    least = min(spreads, key=lambda p: median(p.value))
    scale = _error(s.run)
    none = least.value <= FLOAT * scale
    beside = f", beside an error of {scale:.2g}" if scale else ""
    text = f"The standard deviation of the predictions is {np.median(least.value):.2g} in the median{beside} ({least.tag})"
    if float(none.mean()) > MOST and none[-1]:
        return seen(f"{text}.", where=least.place(s.run, 0), first=int(least.step[0]), last=int(least.step[-1]))
    return absent(f"{text}.", where=least.place(s.run, 0))


def _error(run: Run) -> float:
    """The usual error of the predictions in their own unit, where the loss tells it; else zero, beside which only zero counts as none."""
    loss: Series | None = series(run, "loss.train") or series(run, "loss.eval")
    found = _SQUARED.search(loss.tag) if loss is not None else None
    if loss is None or found is None:
        return 0.0
    x: Floats = loss.value[loss.usable]
    usual = median(x) if len(x) else 0.0
    return usual if found[2].lower().startswith("r") else float(np.sqrt(max(usual, 0.0)))
