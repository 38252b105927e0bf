"""Where the replay does not show what the log shows: what a restart may have lost, and rates other than the schedule's.

An experiment here counts when it brings the logged effect back: the replay with this fault agrees with the log, the one
without does not.
"""

from __future__ import annotations

import math
from typing import Any

from forensics.replay.agreement import shown
from forensics.replay.arms import saves_moments
from forensics.replay.delta_debugging import OutOfBudget
from forensics.replay.reproduce import Reproduction
from forensics.replay.request import Scene
from forensics.replay.runner import Trace, peak
from forensics.replay.targets import SHARE, Logged, Trouble

CLOSER = 0.25  # the mean distance to the log must fall to this share of what it was


def explain(scene: Scene) -> str:
    """Tries the faults of a restart, and the rate as the log has it, from before the first difference: the arm that brings the effect back, or "".

    With an optimizer in the state that it all began from, its moments may be the stale ones of a restart.
    """
    lab, again, trouble, shift = scene.lab, scene.again, scene.trouble, scene.shift
    last = trouble.until - shift
    for name, begin, options in _faults(again, trouble, scene.log, saves_moments(scene.parts)):
        spent = lab.spent
        try:
            trace = lab.along(begin, last, **options)
        except OutOfBudget:
            break
        back = _matches(trace, again, trouble, scene.log)
        says = "agrees with the log" if back else "does not agree with the log"
        scene.arms.note(name, _outcome(trace, trouble, shift), trace, (begin, last), lab.spent - spent, says)
        if back:
            return name
    return ""


def _faults(again: Reproduction, trouble: Trouble, log: Logged, moments: bool) -> list[tuple[str, int, dict[str, Any]]]:
    shift, trace = again.overlay.shift, again.trace
    found: list[tuple[str, int, dict[str, Any]]] = []
    restarts = [r - shift for r in log.restarts if trace.first <= r - shift <= trouble.until - shift]
    at = [sorted({r} | ({r + 1} if log.interval == 1 else {r - r % log.interval})) for r in restarts]
    if not restarts and again.overlay.parts is not None:  # the log of a restart may show none
        at = [[again.overlay.parts - shift - 1, again.overlay.parts - shift]]
    for steps in at:
        found += [(f"moments reset at step {s + shift}", s, {"reset": s}) for s in steps if s >= trace.first]
        old = f"moments of step {trace.first + shift}"
        found += [(f"{old} at step {s + shift}", s, {"moments": [s, "start"]}) for s in steps if moments and s > trace.first]
    rates = {str(s - shift): v for s, v in log.lr.items() if trace.first <= s - shift < trace.first + len(trace)}
    differs = [int(s) for s, v in rates.items() if abs(trace.lr[int(s) - trace.first] - v) > 0.05 * abs(v)]
    if differs and log.interval == 1:
        found.insert(0, ("rate as logged", min(differs), {"changes": {"lr_as_logged": rates}}))
    return found


def _matches(trace: Trace, again: Reproduction, trouble: Trouble, log: Logged) -> bool:
    """The trace has the logged effect, and lies much closer to the log than the plain replay."""
    view, shift = again.overlay.view, again.overlay.shift
    pairs = []
    for label, v in log.loss.items():
        if trouble.onset - 2 * log.interval <= label <= trouble.until:
            a, b = shown(trace, view, log, label), shown(again.trace, view, log, label)
            if a is not None and b is not None and math.isfinite(v):
                pairs.append((abs(a - v) if math.isfinite(a) else math.inf, abs(b - v)))
    if not pairs:
        return False
    near, plain = sum(p[0] for p in pairs), sum(p[1] for p in pairs)
    if plain <= 1e-6 + 1e-3 * abs(trouble.level):
        return False  # there is no difference from the log to explain
    return (trouble.subtle or _outcome(trace, trouble, shift) != "no spike") and near <= CLOSER * plain


def _outcome(trace: Trace, trouble: Trouble, shift: int) -> str:
    inside = trace.window(trouble.onset - shift, trouble.until - shift)
    top = peak(inside)
    if math.isnan(top):
        return "nan"
    return "spike" if not trouble.nonfinite and top - trouble.level >= SHARE * (trouble.top - trouble.level) else "no spike"
