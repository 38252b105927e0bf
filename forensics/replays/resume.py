"""Where the replay does not show what the log shows: what a restart may have lost or changed, and rates other than the schedule's.

An experiment here counts when it brings the logged effect back: the replay with this fault agrees with the log, the one
without does not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from forensics.replays import start_checkpoints
from forensics.replays.agreement import shown
from forensics.replays.arms import saves_moments
from forensics.replays.client import ReplayFailed
from forensics.replays.delta_debugging import OutOfBudget
from forensics.replays.reproduce import Reproduction
from forensics.replays.request import Scene
from forensics.replays.runner import Trace, peak
from forensics.replays.targets import SHARE, Logged, Trouble

CLOSER = 0.25  # the mean distance to the log must fall to this share of what it was
NEAR = 10  # logging intervals before the first difference, in which a restart may have made it: a small change takes steps to show


@dataclass(frozen=True)
class Later:
    """The first checkpoint after the steps in question, under the name "later", and how its optimizer is set otherwise."""

    step: int
    differs: str  # "weight_decay 10 for 0.01", "" where it is set as before
    rate: str  # the same of the rate, which the training's own step may set


def explain(scene: Scene) -> tuple[str, str]:
    """(what brings the logged effect back, what speaks for a restart that changed something); each "" where nothing does.

    Tried from before the first difference on: the faults of a restart, the settings that a later checkpoint has, and the rate as the log
    has it. With an optimizer in the state that it all began from, its moments may be the stale ones of a restart.
    """
    lab, again, trouble, shift = scene.lab, scene.again, scene.trouble, scene.shift
    last, later = trouble.until - shift, _later(scene)
    for name, begin, options in _faults(again, trouble, scene.log, saves_moments(scene.parts), later):
        spent = lab.spent
        try:
            trace = lab.along(begin, last, **options)
        except OutOfBudget:
            break
        back = _matches(trace, again, trouble, scene.log)
        says = "agrees with the log" if back else "does not agree with the log"
        scene.arms.note(name, _outcome(trace, trouble, shift), trace, (begin, last), lab.spent - spent, says)
        if back:
            return name, ""
    return "", _changed(scene, later)


def _later(scene: Scene) -> Later | None:
    lab, over = scene.lab, scene.again.overlay
    parts = scene.trouble.onset if over.parts is None else over.parts
    found = start_checkpoints.after(scene.known, parts - scene.shift)
    try:
        step = None if found is None else start_checkpoints.load(lab, found, "later")[0]
    except ReplayFailed as e:
        if e.kind not in ("files", "adapter"):
            raise
        step = None
    if step is None:
        return None
    groups = list(zip(lab.settings["start"], lab.settings["later"], strict=False))
    differs = [(k, f"{k} {new[k]} for {old[k]}") for old, new in groups for k in old if k in new and new[k] != old[k]]
    words = dict.fromkeys(said for k, said in differs if k != "lr")
    rates = dict.fromkeys(said for k, said in differs if k == "lr")
    return Later(step + scene.shift, ", ".join(words), ", ".join(rates))


def _changed(scene: Scene, later: Later | None) -> str:
    """Why a restart may have changed code or settings near the first difference from the log."""
    if later is not None and later.differs:
        return f"the checkpoint of step {later.step} was made with {later.differs}"
    parts = scene.again.overlay.parts
    near = [r for r in scene.log.restarts if parts is not None and parts - NEAR * scene.log.interval <= r <= parts]
    return f"the run was started again at step {near[-1]}, and what else changed then is not known" if near else ""


def _faults(
    again: Reproduction, trouble: Trouble, log: Logged, moments: bool, later: Later | None
) -> list[tuple[str, int, dict[str, Any]]]:
    shift, trace = again.overlay.shift, again.trace
    found: list[tuple[str, int, dict[str, Any]]] = []
    restarts = [r - shift for r in log.restarts if trace.first <= r - shift <= trouble.until - shift]
    at = [sorted({r} | ({r + 1} if log.interval == 1 else {r - r % log.interval})) for r in restarts]
    if not restarts and again.overlay.parts is not None:  # the log of a restart may show none
        at = [[again.overlay.parts - shift - 1, again.overlay.parts - shift]]
    for steps in at:
        if later is not None and (set_so := ", ".join(filter(None, (later.differs, later.rate)))):
            name = f"settings of the checkpoint of step {later.step}"
            found += [(f"{name} from step {s + shift} on ({set_so})", s, {"settings": [s, "later"]}) for s in steps if s >= trace.first]
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
