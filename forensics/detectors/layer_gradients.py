"""Layer gradients

What it sees
    Layers that get no gradient at all, or hardly any beside the others; units that are dead or saturated; weights whose norm
    never moves.

How it decides
    From per-layer norms: a layer whose gradient is exactly zero through the whole run while others move is frozen, and so is one
    whose weights keep the same norm to the last of six digits or more while there is a gradient (for information where config
    freezes parts of the model); one whose norm is a thousandth of the largest starves. From a logged share of dead or saturated
    units: above 90 % for half the run.

Cannot tell
    Where neither per-layer norms nor such shares were logged.

Folklore
    Verify that the optimizer really has the parameters; with adapters they are easily left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from forensics import evidence
from forensics.case import BaseFacts, Finding
from forensics.errors import CannotTell
from forensics.run import weight_norms
from forensics.run.idle_units import shares_zero
from forensics.run.robust import median
from forensics.run.series import Series, names, parts, series
from parsers.lazy_regex import lazy_re
from parsers.tables import Run

NEEDS: list[str] = []
INPUTS = ["grad.norm_layer"]
STARVES = 1e-3  # unit: a thousandth; Adam would hide less of it, SGD does not train such a layer; not critical (docs/thresholds.md)
# measured: at 0.7 of it no healthy run fires, at 1.4 (more than all units) two of five faulty ones are lost (docs/thresholds.md)
DEAD = 0.9
_DEAD = lazy_re(r"(?i)(dead|saturat|dormant|inactive)|\A(?=.*(?:relu|act|unit|neuron|hidden))(?=.*(?:frac|share|ratio))(?=.*zero)")
SMALLEST_EFFECT = "a layer with a thousandth of the largest gradient"


@dataclass(frozen=True)
class Facts(BaseFacts):
    """Layers by their tags."""

    frozen: list[str]  # no gradient, or weights that never move
    starved: list[str]  # a thousandth of the largest gradient
    every: bool | None = None  # frozen are all that were logged
    dead: float | None = None  # share of units that are dead or saturated


def detect(run: Run) -> Iterator[Finding]:
    grads, weights = parts(run, "grad.norm_layer"), weight_norms.norms(run)
    shares = shares_dead(run)
    if not grads and not weights and not shares:
        raise CannotTell("neither norms by layer nor shares of dead units were logged")
    yield from _dead(run, shares)
    usual = {s.tag: median(s.value[np.isfinite(s.value)]) for s in grads if np.isfinite(s.value).any()}
    zero = sorted(t for t, v in usual.items() if v == 0)
    still = sorted(s.tag for s in weights if weight_norms.still(s))
    moving = any(v > 0 for v in usual.values()) or any(np.ptp(s.value) > 0 for s in weights)
    total = series(run, "grad.norm")
    moving |= total is not None and bool(median(total.value[np.isfinite(total.value)]) > 0)
    steps = (run.attempts[0]["steps"][0], max(a["steps"][1] for a in run.attempts))
    if (zero or still) and moving:
        rows = [[t, f"{usual[t]:.3g}" if t in usual else "norm of the weights never changes"] for t in (zero or still)]
        title = f"{len(rows)} of {len(usual) or len(weights)} logged layers never move: {', '.join((zero or still)[:3])}"
        every = len(zero) == len(usual) >= 2
        shown = evidence.table("layers that never move", ["layer", "gradient norm"], rows)
        severity = "info" if weight_norms.frozen_on_purpose(run) else "warning"
        yield evidence.found(Facts(zero or still, [], every), title, steps, severity, shown, key="frozen")
    starved = sorted(t for t, v in usual.items() if 0 < v < STARVES * max(usual.values()))
    if starved:
        rows = [[t, f"{v:.3g}"] for t, v in sorted(usual.items(), key=lambda kv: kv[1])]
        title = f"{len(starved)} of {len(usual)} layers get less than a thousandth of the largest gradient: {', '.join(starved[:3])}"
        shown = evidence.table("gradient norm by layer", ["layer", "median norm"], rows)
        yield evidence.found(Facts([], starved), title, steps, "warning", shown, key="starved")


def shares_dead(run: Run) -> list[Series]:
    """What was logged of units that are dead or saturated."""
    return [*shares_zero(run)] + [s for n in names(run) if _DEAD.search(n) and (s := series(run, n)) is not None]


def _dead(run: Run, shares: list[Series]) -> Iterator[Finding]:
    for s in shares:
        if median(s.value) >= DEAD and s.value.max() <= 1.0:
            title = f"{np.median(s.value):.0%} of the units are dead or saturated ({s.tag})"
            shown = evidence.window(s, int(s.step[0]), int(s.step[-1]), title=s.tag, where=s.place(run, 0), margin=0)
            facts, steps = Facts([], [], dead=median(s.value)), (int(s.step[0]), int(s.step[-1]))
            yield evidence.found(facts, title, steps, "warning", shown, key="dead", times=(s.clock(0), None))
            return
